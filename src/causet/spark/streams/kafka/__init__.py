"""Kafka as a source and a sink of streams.

A data source of PySpark's own interface, on librdkafka: it needs no jar beside Spark's, so that `pip install`
is enough. `client` has addresses, retries and topics; `source` reads (`rows`, `gaps`), `sink` writes
(`transaction`).
"""
