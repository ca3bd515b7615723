"""Do all processes deliver in one order? The union of their delivery orders must have no cycle.

Two processes that deliver two messages in different orders are the shortest cycle; but three may agree on
every pair that two of them share, and still have no order in common: p1 delivers a, b, p2 b, c and p3 c, a.

Messages that contradict each other are those of a strongly connected component of the union; its edges are
the consecutive deliveries of each process. Every such component is reported once, by a shortest cycle through
its smallest message. The time is linear in the deliveries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

DISAGREEMENTS_LISTED = 100


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`processes[i]` delivered `cycle[i]` before the message after it; the first one comes after the last."""

    cycle: tuple[str, ...]
    processes: tuple[str, ...]

    def __str__(self) -> str:
        """
        >>> str(Disagreement(("a", "b"), ("p1", "p2")))
        'p1 delivered a before b, p2 delivered b before a'
        """
        after = (*self.cycle[1:], self.cycle[0])
        steps = zip(self.processes, self.cycle, after, strict=True)
        return ", ".join(f"{process} delivered {one} before {other}" for process, one, other in steps)

    def record(self) -> dict[str, list[str]]:
        """As `--json` has it."""
        return {"cycle": list(self.cycle), "processes": list(self.processes)}


def disagreements(
    orders: Mapping[str, Iterable[str]], most: int = DISAGREEMENTS_LISTED
) -> tuple[Disagreement, ...]:
    """Where the delivery orders of these processes contradict each other; of a message that is delivered
    again its first delivery counts.

    >>> [str(each) for each in disagreements({"p1": "ab", "p2": "bc", "p3": "ca"})]
    ['p1 delivered a before b, p2 delivered b before c, p3 delivered c before a']
    """
    once = {process: list(dict.fromkeys(order)) for process, order in sorted(orders.items())}
    after: dict[str, list[str]] = {}
    for order in once.values():
        for place, message in enumerate(order):
            after.setdefault(message, []).extend(order[place + 1 : place + 2])
    found = sorted((component for component in _components(after) if len(component) > 1), key=min)
    part_of = {message: part for part, component in enumerate(found[:most]) for message in component}
    orders_in: list[dict[str, list[str]]] = [{} for _ in found[:most]]
    for process, order in once.items():
        for message in order:
            if message in part_of:
                orders_in[part_of[message]].setdefault(process, []).append(message)
    return tuple(_cycle(min(component), orders_in[part]) for part, component in enumerate(found[:most]))


def _components(after: Mapping[str, Sequence[str]]) -> Iterable[list[str]]:
    """The strongly connected components, by Tarjan's algorithm, with a stack of its own."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    is_open: set[str] = set()
    for start in sorted(after):
        if start in number:
            continue
        path = [(start, iter(after[start]))]
        number[start] = lowest[start] = len(number)
        open_.append(start)
        is_open.add(start)
        while path:
            message, following = path[-1]
            for other in following:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    open_.append(other)
                    is_open.add(other)
                    path.append((other, iter(after[other])))
                    break
                if other in is_open:
                    lowest[message] = min(lowest[message], number[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[message])
                if lowest[message] == number[message]:
                    place = len(open_) - 1
                    while open_[place] != message:
                        place -= 1
                    yield open_[place:]
                    is_open.difference_update(open_[place:])
                    del open_[place:]


def _cycle(start: str, orders: Mapping[str, list[str]]) -> Disagreement:
    """A shortest cycle through a message, of which there is one within these orders.

    Breadth first: from a message everything is reached that some process delivered after it.
    """
    places = {process: {m: place for place, m in enumerate(order)} for process, order in orders.items()}
    reached = {process: len(order) for process, order in orders.items()}  # from this place on
    came: dict[str, tuple[str, str]] = {}
    todo = [start]
    for message in todo:
        for process, order in orders.items():
            place = places[process].get(message)
            if place is None:
                continue
            if message != start and place < places[process].get(start, -1):
                cycle, processes = [message], [process]
                while cycle[-1] != start:
                    before, by = came[cycle[-1]]
                    cycle.append(before)
                    processes.append(by)
                return Disagreement(tuple(reversed(cycle)), tuple(reversed(processes)))
            for other in order[place + 1 : reached[process]]:
                if other not in came:
                    came[other] = (message, process)
                    todo.append(other)
            reached[process] = min(reached[process], place + 1)
    raise AssertionError(f"{start} is on no cycle")
