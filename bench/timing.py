"""Best of several repetitions, in turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Mapping
from time import process_time
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)
LEAST = 2
"""Nothing is measured only once."""


def best(
    works: Mapping[Name, Callable[[], object]],
    repetitions: int,
    *,
    enough: float = float("inf"),
    collect: bool = True,
) -> dict[Name, float]:
    """The least processor time that each work took, in seconds; each repetition does every work once,
    in turns forwards and backwards.

    A work that has taken `enough` seconds in all is left out of further repetitions, after the second: what
    takes long is disturbed less.

    The garbage collector is on, as users have it; with `collect=False` it is off. What is there before the
    first work begins is frozen (`gc.freeze`), so that the collector goes through what the work makes, and not
    through the inputs of the benchmark. That is the stricter way: full collections come when there is a
    quarter more than at the last one, and inputs that counted would make them rare.
    """
    least: dict[Name, float] = {}
    spent = dict.fromkeys(works, 0.0)
    gc.collect()
    gc.freeze()
    try:
        for repetition in range(max(repetitions, LEAST)):
            turn = list(works.items())
            for name, work in turn[::-1] if repetition % 2 else turn:
                if repetition >= LEAST and spent[name] >= enough:
                    continue
                gc.collect()  # what the work before it left
                if not collect:
                    gc.disable()
                try:
                    start = process_time()
                    work()
                    taken = process_time() - start
                finally:
                    gc.enable()
                spent[name] += taken
                least[name] = min(taken, least.get(name, taken))
    finally:
        gc.unfreeze()
    return least
