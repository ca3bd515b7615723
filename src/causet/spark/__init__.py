"""The data pipeline on Spark: DataFrame in, DataFrame out, by the public API only."""
