"""Starting Spark, and installing the package."""
