"""The process from which Spark forks its Python workers, with everything loaded that their tasks need.

Spark's own daemon loads next to nothing: each worker then reads PySpark from a zip archive, compiling it as
it goes, which takes longer than most tasks. Spark starts this module instead where driver and workers have
the same installation (`spark.python.daemon.module`).
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

LOADED = (
    "pyspark.worker",
    "causet.spark.batch.audit",
    "causet.spark.streams.deliver",
    "causet.spark.batch.explain",
    "causet.spark.streams.merge.merge",
    "causet.spark.batch.verify",
)


def prefer_installed() -> None:
    """Let PySpark come from where it is installed, compiled, if it is: not from Spark's zip archives."""
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if not _zipped(Path(entry))]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = path


def _zipped(entry: Path) -> bool:
    return entry.suffix == ".zip" and entry.name.startswith(("pyspark", "py4j"))


def load() -> None:
    """What fails here fails again, with a sentence, in the task that wants it."""
    for name in LOADED:
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(Exception):
        import numpy as np

        from causet.kernels.logs.pages import by_page

        by_page(np.arange(1))  # numba prepares itself at the first kernel


if __name__ == "__main__":
    prefer_installed()
    load()
    from pyspark.daemon import manager

    manager()
