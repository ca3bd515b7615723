"""The former home of `spark_session`, kept for programs that import it from here."""

from causet.spark.start.session import spark_session as spark_session
