"""Start of Spark: Java, settings, the session, and its errors as sentences."""
