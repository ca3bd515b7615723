"""causet: cause before effect.

Puts messages and events of many processes into causal order: no answer is seen before its question.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from causet.cuts import Cuts
from causet.stamp import ClockJumped, RcClock, Stamper

if TYPE_CHECKING:
    from causet.view.notebook import view

__version__ = "0.1.0"
__all__ = ["ClockJumped", "Cuts", "RcClock", "Stamper", "__version__", "view"]


def __getattr__(name: str) -> Any:
    # A producer that only stamps its messages loads the standard library and nothing else.
    if name == "view":
        return import_module("causet.view")  # the room itself can be called
    raise AttributeError(f"module 'causet' has no attribute {name!r}")
