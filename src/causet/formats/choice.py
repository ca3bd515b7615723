"""Which one of several executions: by its name, by the name as it was printed, or by its number.

Rule: what a list prints can be given back. A long name is printed shortened, so its beginning with an
ellipsis means it too; where that fits several, they are listed with their numbers, which are never ambiguous.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from causet.errors import BadInput, listed, printable
from causet.formats.execution import Execution

MOST_LISTED = 8
_ELLIPSES = ("…", "...")


def one_execution(found: Sequence[Execution], wanted: str | None, where: str) -> Execution:
    """The execution that is wanted, or the only one; BadInput lists them where that is not clear."""
    numbers = range(len(found)) if wanted is None else _matching(found, wanted)
    if len(numbers) == 1:
        return found[numbers[0]]
    if wanted is None:
        raise BadInput(
            f"{where}: there are {len(found):,} executions; name one with --execution, by its name or its "
            f"number: {_listed(found, numbers)}"
        )
    if not numbers:
        raise BadInput(
            f"{where}: there is no execution {shlex.quote(printable(wanted))}; there are "
            f"{_listed(found, range(len(found)))}"
        )
    raise BadInput(
        f"{where}: {shlex.quote(printable(wanted))} may be any of {len(numbers):,} executions; name one with "
        f"--execution by its number: {_listed(found, numbers)}"
    )


def _matching(found: Sequence[Execution], wanted: str) -> Sequence[int]:
    """The numbers, from 0, of the executions that this may mean: the first rule that fits any decides."""
    names = [execution.name for execution in found]
    fits = [number for number, name in enumerate(names) if name == wanted]
    fits = fits or [
        number for number, name in enumerate(names) if wanted in (printable(name), listed([name]))
    ]
    fits = fits or [number for number, name in enumerate(names) if _shortens(wanted, name)]
    if not fits and wanted.isascii() and wanted.isdigit() and 1 <= int(wanted[:9]) <= len(found):
        fits = [int(wanted[:9]) - 1]
    return fits


def _shortens(wanted: str, name: str) -> bool:
    """Whether this is the name with an ellipsis for a part of it."""
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    for mark in _ELLIPSES:
        head, found, tail = wanted.partition(mark)
        fits = escaped.startswith(head) and escaped.endswith(tail)
        if found and (head or tail) and fits and len(head) + len(tail) <= len(escaped):
            return True
    return False


def _listed(found: Sequence[Execution], numbers: Sequence[int]) -> str:
    """The executions with their numbers, from 1, each name as a shell takes it."""
    names = [
        f"{number + 1}: {shlex.quote(printable(found[number].name)) if found[number].name else '(no name)'}"
        for number in numbers[:MOST_LISTED]
    ]
    more = len(numbers) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")
