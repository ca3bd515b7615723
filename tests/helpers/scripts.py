"""Scripts that run in a process of their own, and how long they may take."""

from __future__ import annotations

from pathlib import Path

LONG = 600
"""Seconds that nothing here takes, on however busy a machine."""


def written(script: str, folder: Path) -> Path:
    """A file: where there is none, PySpark takes a process without gRPC for its own doctests, and exits."""
    path = folder / "script.py"
    path.write_text(script)
    return path


SERVER = """
import sys
from causet.spark.start.session import spark_session
spark_session("local[2]", {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": sys.argv[1],
}, brief=True)
print("ready", flush=True)
sys.stdin.read()
"""
