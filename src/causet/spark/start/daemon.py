"""The process from which Spark forks its Python workers, with everything that their tasks need preloaded.

Spark's own daemon loads very little: each worker then imports PySpark from a zip archive and compiles it,
which takes longer than most tasks. Where driver and workers share one installation, Spark starts this module
instead (`spark.python.daemon.module`). It ends in `pyspark.daemon.manager`, which is not public API.
"""

from __future__ import annotations

import gc
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
    """Import PySpark from its compiled installation, if there is one, not from Spark's zip archives."""
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if not _zipped(Path(entry))]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = path


def _zipped(entry: Path) -> bool:
    return entry.suffix == ".zip" and entry.name.startswith(("pyspark", "py4j"))


def load() -> None:
    """Import the modules of tasks. A failure is ignored here: the task that needs the module reports it."""
    for name in LOADED:
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(Exception):
        import numpy as np

        from causet.kernels.logs.pages import by_page

        by_page(np.arange(1))  # the first kernel initialises numba


def spare_collector() -> None:
    """Keep what is loaded out of the cyclic collector. A worker runs it after every task, and without this it
    walks all of numba, pandas and PySpark, which takes longer than a small task, and copies their pages."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prefer_installed()
    load()
    from pyspark.daemon import manager

    spare_collector()
    manager()
