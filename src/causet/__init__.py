"""causet: cause before effect.

Puts messages and events of many processes into causal order: nobody ever sees an answer before its question.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
