"""The Spark that the tests of one process share."""

from __future__ import annotations

from pyspark.sql import SparkSession

from causet.spark.start.session import spark_session

CONF = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g"}


def shared_spark() -> SparkSession:
    """The session of this process, started with these settings by the first test that asks for it."""
    return spark_session("local[2]", CONF, brief=True)
