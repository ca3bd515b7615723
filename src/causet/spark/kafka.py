"""Kafka as a source and a sink of streams.

A data source of PySpark's own interface, on librdkafka: it needs no jar beside Spark's, so that `pip install`
is enough. `kafka_client` has addresses, retries and topics; `kafka_source` reads, `kafka_sink` writes.
"""

from causet.spark.kafka_client import RETRY, Address, client, committed_reader, consumed
from causet.spark.kafka_sink import KafkaSink
from causet.spark.kafka_source import GAPS, PER_BATCH, KafkaReader, KafkaSource, read_gaps, read_kafka

__all__ = [
    "GAPS",
    "PER_BATCH",
    "RETRY",
    "Address",
    "KafkaReader",
    "KafkaSink",
    "KafkaSource",
    "client",
    "committed_reader",
    "consumed",
    "read_gaps",
    "read_kafka",
]
