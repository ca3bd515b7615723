"""One Spark for all tests that want one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from causet.spark.session import spark_session


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """The session of this process; it stays for the next module."""
    return spark_session("local[2]", {"spark.sql.shuffle.partitions": "4"})
