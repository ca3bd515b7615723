"""The data pipeline on Spark: DataFrame in, DataFrame out, by the public API only.

What stands here is imported when it is first used: kernels and Arrow take a second to load, which whoever
only starts a session need not wait for. No module of this package has the name of one of these functions,
since importing it would put the module in the function's place.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causet.spark.java import cache_folder, writable_cache

if not os.access(Path(__file__).parents[1] / "kernels", os.W_OK) and cache_folder() is None:
    # Where neither the package nor a home can be written to, numba would refuse to load a kernel.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(writable_cache() / "numba"))

if TYPE_CHECKING:
    from causet.spark.asserting import assert_causally_ordered
    from causet.spark.auditing import audit
    from causet.spark.delivering import deliver
    from causet.spark.explaining import explain
    from causet.spark.merging import merge
    from causet.spark.order import causal_order, order_events
    from causet.spark.vectors import causal_past, happened_before, vector_clocks
    from causet.spark.verification import verify

__all__ = [
    "assert_causally_ordered",
    "audit",
    "causal_order",
    "causal_past",
    "deliver",
    "explain",
    "happened_before",
    "merge",
    "order_events",
    "vector_clocks",
    "verify",
]

_HOMES = {
    "assert_causally_ordered": "asserting",
    "audit": "auditing",
    "causal_order": "order",
    "causal_past": "vectors",
    "deliver": "delivering",
    "explain": "explaining",
    "happened_before": "vectors",
    "merge": "merging",
    "order_events": "order",
    "vector_clocks": "vectors",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
