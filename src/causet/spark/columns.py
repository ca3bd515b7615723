"""Names of columns: quoted for Spark, and of columns that would clash with those that are added."""

from __future__ import annotations

from collections.abc import Sequence

INPUT = "input_"
"""Before the name of a user's column that has the name of one that is added."""


def input_names(names: Sequence[str], added: Sequence[str], case_matters: bool) -> dict[str, str]:
    """What columns are called whose names are those of columns that are added: own name → new name.

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
