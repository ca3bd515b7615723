"""Messages with cuts, priorities, scopes and bypasses, served to readers as workers serve them.

What must be delivered comes from the worlds of `stability` and `incomplete`: from sets of messages that no
stamper sees.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from causet import envelope, frontier, stamp
from tests.helpers import incomplete, stability
from tests.helpers.readers import FORMS, Row, Served

MADE = {"frontier": frontier, "stamp": stamp, "envelope": envelope}


def row_of(name: str, message: Mapping[str, Any]) -> Row:
    """An envelope as a row, as a topic has it: all but the version is text."""
    wanted = FORMS["envelope"].names
    texts = {key: str(value).lower() if value is True else str(value) for key, value in message.items()}
    return {**{key: texts[key] for key in texts if key in wanted}, "id": name, "causalversion": 2}


def fixpoint(may: Callable[[int, set[int]], bool], came: set[int]) -> set[int]:
    """What is delivered of what came, if each message goes as soon as it may."""
    done: set[int] = set()
    while new := {at for at in came - done if may(at, done)}:
        done |= new
    return done


def served_in_batches(
    rng: random.Random, served: Served, rows: Sequence[Row], check: Callable[[set[int], list[Row]], None]
) -> None:
    """Serve the rows in another order, some twice, in batches of some size; and check after each."""
    order = [*range(len(rows)), *rng.choices(range(len(rows)), k=len(rows) // 6)]
    window = rng.choice([1, 4, 100])
    order = [at for _, at in sorted((place + rng.random() * window, at) for place, at in enumerate(order))]
    size = rng.choice([1, 3, 100])
    came: set[int] = set()
    left: list[Row] = []
    for now, begin in enumerate(range(0, len(order), size)):
        batch = order[begin : begin + size]
        left += served.step([rows[at] for at in batch], now)
        came |= {*batch}
        check(came, left)


def check_incomplete(seed: int, made: Mapping[str, Any] | None = None) -> None:
    """Priorities, scopes and bypasses: after each batch every reader has what it must have, and no more."""
    rng = random.Random(seed)
    world = incomplete.World(MADE, seed)
    world.run(60)
    messages = world.messages
    readers = {f"r{at}": [*sorted(world.some())] for at in range(rng.randint(1, 3))}
    served = Served(readers, made=made)

    def may(reads: set[str]) -> Callable[[int, set[int]], bool]:
        def found(at: int, done: set[int]) -> bool:
            causes = (messages[each] for each in messages[at].before - done)
            urgent = messages[at].priority
            return not any(each.groups & reads and each.priority >= urgent for each in causes)

        return found

    def check(came: set[int], left: list[Row]) -> None:
        for reader, groups in readers.items():
            reads = set(groups)
            mine = {at for at in came if messages[at].groups & reads}
            got = [int(each["id"]) for each in left if each["receiver"] == reader]
            assert len(got) == len(set(got)) and {*got} == fixpoint(may(reads), mine)
            for place, at in enumerate(got):
                assert may(reads)(at, {*got[:place]}), "in the order of delivery, too"
        assert all(each["status"] == "delivered" for each in left)

    served_in_batches(
        rng, served, [row_of(str(at), each.envelope) for at, each in enumerate(messages)], check
    )


def write_cuts(folder: Path, place: Mapping[int, stability.Contents]) -> None:
    """Cuts as files, by the words of the format: each whole."""
    (folder / "cuts").mkdir(parents=True)
    for number, groups in place.items():
        if number:
            whole = {"version": 1, "number": number, "base": 0, "groups": groups}
            (folder / "cuts" / f"{number:016}.json").write_text(json.dumps(whole))


def check_cuts(seed: int, folder: Path, made: Mapping[str, Any] | None = None) -> int:
    """Messages that name cuts: no reader is early, and none holds what it has all of; how many name one."""
    rng = random.Random(seed)
    world = stability.World(frontier, stamp, seed)
    world.run(120)
    write_cuts(folder, world.place)
    sent = world.sent
    readers = {f"r{at}": [*sorted(world.some())] for at in range(rng.randint(1, 3))}
    served = Served(readers, made=made)
    served.settings = replace(served.settings, stable=str(folder))

    def check(came: set[int], left: list[Row]) -> None:
        for reader, groups in readers.items():
            addressed = world.addressed(groups)
            cuts = {
                number: world.set_of({group: cut[group] for group in cut.keys() & groups})
                for number, cut in world.place.items()
            }

            def may(at: int, done: set[int], addressed: int = addressed, cuts: Any = cuts) -> bool:
                wanted = (sent[at].before & addressed) | cuts[sent[at].cut]
                return all(each in done for each in range(len(sent)) if wanted >> each & 1)

            mine = {at for at in came if addressed >> at & 1}
            got = [int(each["id"]) for each in left if each["receiver"] == reader]
            assert len(got) == len(set(got)) and {*got} == fixpoint(may, mine)
            for place, at in enumerate(got):
                assert may(at, {*got[:place]}), "in the order of delivery, too"
        assert all(each["status"] == "delivered" for each in left)

    rows = [row_of(str(at), each.envelope) for at, each in enumerate(sent)]
    served_in_batches(rng, served, rows, check)
    assert served.held == 0, "all came, so all left"
    return sum(each.cut > 0 for each in sent)
