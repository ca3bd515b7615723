"""Streams on Spark: operators, sources, sinks, faults."""
