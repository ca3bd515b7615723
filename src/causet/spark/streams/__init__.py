"""Streams of messages: sources, operators with state, sinks, checkpoints."""
