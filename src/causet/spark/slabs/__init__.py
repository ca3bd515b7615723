"""Logs ordered in slabs of time by Spark: workers read and write Arrow, Spark shuffles what they cut."""
