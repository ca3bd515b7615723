"""Pictures of executions: as text, as one offline page, in a notebook.

The room is also what draws: `causet.view(trace)` (see `notebook.view`).
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, trace: Any, **wanted: Any) -> Any:
        from causet.view.notebook import view

        return view(trace, **wanted)


sys.modules[__name__].__class__ = _Callable
