"""Where `spark_session` has always been imported from; `causet.spark.spark_session` is the same."""

from causet.spark.start.session import spark_session as spark_session
