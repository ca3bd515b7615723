"""causet: cause before effect.

Puts messages and events of many processes into causal order: nobody ever sees an answer before its question.
"""

from causet.stamp import ClockJumped, RcClock, Stamper

__version__ = "0.1.0"
__all__ = ["ClockJumped", "RcClock", "Stamper", "__version__"]
