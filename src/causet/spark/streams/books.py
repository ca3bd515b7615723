"""The books of a stream: what came in, and what became of it.

    held before + read + copies
        = delivered + flagged + late + diverted + conflicts + duplicates + heartbeats + unread + held

`read` is counted where rows are read, everything else where their fate is decided. A run whose books do not
balance has lost or duplicated something. Where there are several readers, `copies` are the further ones of
messages that have more than one, and `unread` the messages that have none. Packets of a protocol can also be
`control` packets, or `sent` by the process itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from causet.status import CONTROL, COPIES, OUTCOMES, READ, SENT, UNREAD

OBSERVED = "causet"
"""The name of the metrics that a query reports for every batch."""


@dataclass(frozen=True)
class Books:
    """What a run read, and what became of it.

    >>> books = Books(held_before=1, counts={"read": 4, "delivered": 2, "duplicates": 1}, held=2)
    >>> books.balance
    True
    >>> print(books)
    held before 1 + read 4 = delivered 2 + duplicates 1 + held 2
    """

    held_before: int
    counts: Mapping[str, int]
    held: int
    unreadable_files: int = 0

    @property
    def balance(self) -> bool:
        came = self.held_before + self._count(READ) + self._count(COPIES)
        return came == sum(map(self._count, self._fates)) + self.held

    @property
    def _fates(self) -> tuple[str, ...]:
        """What can become of a row; only packets of protocols can be sent, or be control packets."""
        return (*OUTCOMES, UNREAD, *(name for name in (CONTROL, SENT) if name in self.counts))

    def _count(self, name: str) -> int:
        return self.counts.get(name, 0)

    def as_json(self) -> dict[str, Any]:
        return {
            "held_before": self.held_before,
            READ: self._count(READ),
            COPIES: self._count(COPIES),
            **{name: self._count(name) for name in self._fates},
            "held": self.held,
            "unreadable_files": self.unreadable_files,
            "balance": self.balance,
        }

    def __str__(self) -> str:
        fates = [f"{name} {self._count(name):,}" for name in self._fates if self._count(name)]
        equal = "=" if self.balance else "≠"
        left = f"held before {self.held_before:,} + read {self._count(READ):,}"
        if self._count(COPIES):
            left += f" + copies {self._count(COPIES):,}"
        return f"{left} {equal} {' + '.join([*fates, f'held {self.held:,}'])}"
