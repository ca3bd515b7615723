"""What a task may use: memory, and a folder for its files."""

from __future__ import annotations

import os
import resource
from pathlib import Path

MOST = 384 << 20
"""Bytes that a task keeps in memory; what is more goes to disk."""
LEAST = 32 << 20


def memory_allowed() -> int:
    """Bytes for a task: fewer if the worker's address space is limited (`spark.executor.pyspark.memory`)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return MOST
    try:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        taken = limit // 2
    return max(LEAST, min(MOST, (limit - taken) // 3))


def scratch_folder() -> str | None:
    """The folder where Spark keeps its own temporary files, if it is known."""
    named = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return named if named and Path(named).is_dir() else None
