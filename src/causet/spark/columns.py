"""Names of columns: quoted for Spark, and changed where they would clash with those that are added."""

from __future__ import annotations

from collections.abc import Sequence

INPUT = "input_"
"""The prefix for a column of the input that has the name of an added one."""


def input_names(names: Sequence[str], added: Sequence[str], case_matters: bool) -> dict[str, str]:
    """New names for columns that have the name of an added one: old name → new name.

    >>> input_names(["block", "id", "input_block"], ["block"], True)
    {'block': 'input_input_block'}
    """

    def key(name: str) -> str:
        return name if case_matters else name.lower()

    ours = {key(name) for name in added}
    taken = {key(name) for name in (*names, *added)}
    found: dict[str, str] = {}
    for name in names:
        if key(name) in ours:
            new = INPUT + name
            while key(new) in taken:
                new = INPUT + new
            taken.add(key(new))
            found[name] = new
    return found


def quoted(name: str) -> str:
    """A column's name as Spark's own parser reads it.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"
