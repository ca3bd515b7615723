"""The data pipeline on Spark: DataFrame in, DataFrame out.

The public functions are imported when they are first used: kernels and Arrow take a second to load, and
starting a session does not need them. No room has the name of a public function, since importing the room
would replace the function by the module.

Which private parts of Spark are used, and why, is in `docs/spark.md`.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causet.spark.start.java import cache_folder, writable_cache

if not os.access(Path(__file__).parents[1] / "kernels", os.W_OK) and cache_folder() is None:
    # If neither the package nor the home folder is writable, numba would refuse to load a kernel.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(writable_cache() / "numba"))

if TYPE_CHECKING:
    from causet.spark.batch.assert_order import assert_causally_ordered
    from causet.spark.batch.audit import audit
    from causet.spark.batch.audited import Audit
    from causet.spark.batch.explain import explain
    from causet.spark.batch.happened_before import happened_before
    from causet.spark.batch.order import causal_order, order_events
    from causet.spark.batch.vectors import causal_past, vector_clocks
    from causet.spark.batch.verify import Verdict, verify
    from causet.spark.start.session import spark_session
    from causet.spark.streams.deliver import deliver
    from causet.spark.streams.merge.merge import merge

__all__ = [
    "Audit",
    "Verdict",
    "assert_causally_ordered",
    "audit",
    "causal_order",
    "causal_past",
    "deliver",
    "explain",
    "happened_before",
    "merge",
    "order_events",
    "spark_session",
    "vector_clocks",
    "verify",
]

_HOMES = {
    "Audit": "batch.audited",
    "Verdict": "batch.verify",
    "assert_causally_ordered": "batch.assert_order",
    "audit": "batch.audit",
    "causal_order": "batch.order",
    "causal_past": "batch.vectors",
    "deliver": "streams.deliver",
    "explain": "batch.explain",
    "happened_before": "batch.happened_before",
    "merge": "streams.merge.merge",
    "order_events": "batch.order",
    "spark_session": "start.session",
    "vector_clocks": "batch.vectors",
    "verify": "batch.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
