"""The signs and words of a drawing as text: how names are shown, and what stands beside an event.

Every text that is shown passes through here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from causet.escapes import columns
from causet.model import Event
from causet.view.fitting import cut, plain
from causet.view.ordered import natural
from causet.view.timeline import Timeline

WIDEST = 30
"""A longer list of targets, or text, is cut although there might be room."""
LONGEST_NAME = 20
LONGEST_NOTE = 300


class Signs(NamedTuple):
    """What a drawing is made of."""

    send: str = "●"
    receive: str = "○"
    deliver: str = "◆"
    local: str = "▪"
    lane: str = "│"
    dash: str = "┄"
    dot: str = "·"
    right: str = "▶"
    left: str = "◀"
    control_right: str = "▷"
    control_left: str = "◁"
    from_left: str = "├"
    from_right: str = "┤"
    wrong: str = "✗"
    more: str = "…"
    to: str = "→"
    source: str = "←"
    space: str = "␣"


UNICODE = Signs()
ASCII = Signs("*", "o", "@", "=", "|", "-", ".", ">", "<", ">", "<", "+", "+", "X", "..", "->", "<-", "_")


@dataclass(frozen=True, slots=True)
class Words:
    """How names are shown: escaped, cut, and still different from each other."""

    signs: Signs
    ascii: bool
    processes: dict[str, str]
    messages: dict[str, str]

    @classmethod
    def of(cls, timeline: Timeline, signs: Signs, ascii: bool) -> Words:
        found = cls(signs, ascii, {}, {})
        found.processes.update(found._different(timeline.processes))
        control = {event.message for event in timeline.events if event.control}
        names = found._different(dict.fromkeys(e.message for e in timeline.events if e.message is not None))
        found.messages.update({name: f"({s})" if name in control else s for name, s in names.items()})
        return found

    def _different(self, names: Iterable[str]) -> dict[str, str]:
        taken: set[str] = set()
        found = {}
        for name in names:
            short = first = self.name(name)
            number = 1
            while short in taken:
                number += 1
                short = f"{first}~{number}"
            taken.add(short)
            found[name] = short
        return found

    def name(self, name: str) -> str:
        """A name as one word, so that a list of names can be read; a long one keeps both ends."""
        ends = name if len(name) <= LONGEST_NOTE else name[:LONGEST_NAME] + name[-LONGEST_NAME:]
        word = plain(ends.replace(" ", self.signs.space), self.ascii)
        return cut(word, LONGEST_NAME, self.signs.more, tail=LONGEST_NAME // 3) or "''"

    def text(self, text: str, most: int = LONGEST_NOTE) -> str:
        return cut(plain(text[: LONGEST_NOTE + 1], self.ascii), most, self.signs.more)

    def cut(self, text: str, most: int, tail: int = 0) -> str:
        return cut(text, most, self.signs.more, tail)

    def labels(self, event: Event, everyone: int, unseen: Sequence[str], sent: bool) -> list[str]:
        """What to write beside an event, the best first, the shortest last."""
        signs = self.signs
        if event.message is None:
            return [self.text(event.text or "", WIDEST)]
        name = self.messages[event.message]
        if event.kind == "send":
            return [f"{name} {signs.to} {targets}" for targets in self._targets(event, everyone)] + [name]
        if unseen:
            return [f"{name} {signs.source} {' '.join(self.processes[p] for p in unseen)}", name]
        if event.kind in ("receive", "deliver") and not sent:
            return [f"{name} {signs.source} ?", name]
        return [name]

    def _targets(self, event: Event, everyone: int) -> Iterator[str]:
        names = [self.processes[p] for p in sorted(set(event.to or ()), key=natural)]
        if names and columns(" ".join(names)) <= WIDEST:
            yield " ".join(names)
        if event.group is not None:
            yield self.name(event.group)
        if len(names) > 1:
            if len(names) == everyone - 1:
                yield "all"
            for count in range(min(len(names), WIDEST) - 1, 0, -1):
                some = f"{' '.join(names[:count])} +{len(names) - count}"
                if columns(some) <= WIDEST:
                    yield some
            yield f"{len(names)} others"
