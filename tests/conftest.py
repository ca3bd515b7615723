"""One Spark for all tests that want one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from causet.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = spark_session("local[2]", {"spark.sql.shuffle.partitions": "4"})
    yield made
    made.stop()
