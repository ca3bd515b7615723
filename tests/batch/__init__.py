"""Questions about a whole log, on Spark."""
