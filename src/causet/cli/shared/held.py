"""Why is this held? The answer of `causet explain --checkpoint`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causet.cli.shared.printing import print_json, say
from causet.cli.shared.spark import session
from causet.errors import BadInput, printable
from causet.identity import source_of

if TYPE_CHECKING:
    from causet.spark.streams.bucket import Wanted
    from causet.spark.streams.held import Held, Wait
    from causet.spark.streams.messages.settings import Settings

FINE = 0


def explain_held(
    folder: Path,
    wanted: str | None,
    most: int,
    as_json: bool,
    master: str | None,
    conf: Mapping[str, str],
) -> int:
    """Print which messages a query holds and what they wait for; or one of them."""
    from causet.spark.streams.checkpoint import Checkpoint, read_checkpoint

    about = read_checkpoint(folder)
    if about is None:
        raise BadInput(f"{folder} is not a checkpoint of causet deliver or merge")
    if about["command"] == "merge":
        return _merge_held(Checkpoint(folder).spark, as_json, master, conf)
    if "protocol" in about["fixed"]:
        return _members_hold(Checkpoint(folder).spark, about, wanted, most, as_json, master, conf)
    by_id = about["fixed"]["parent"] is not None
    settings: Settings
    with session(master, conf, "reading", brief=True) as spark:
        from causet.spark.streams.deliver import Deliver, deliver
        from causet.spark.streams.file_source import schema_from
        from causet.spark.streams.held import came_elsewhere, held_messages, how_many_held

        state = Checkpoint(folder).spark
        count = how_many_held(spark, state)
        found: list[Held] = []
        elsewhere: dict[Wanted, str] = {}
        if count:
            empty = spark.createDataFrame([], schema_from(about["schema"]))
            fixed = about["fixed"]
            asked = deliver(
                missing="wait",
                by=fixed["by"],
                parent=fixed["parent"],
                buckets=fixed["buckets"],
                readers=about["settings"].get("readers"),
            )
            assert isinstance(asked, Deliver)
            _, settings, _ = asked.settled(empty)
            every = held_messages(spark, state, settings)
            if wanted is None:
                found = sorted(every, key=_root_causes_first)[:most]
            else:
                found = list(islice((each for each in every if _is_meant(each.name, wanted)), most))
            absent = (wait.wanted for each in found for wait in each.waits_for if not wait.held)
            elsewhere = came_elsewhere(spark, state, absent)
    now = time.time()
    if as_json:
        rows = [
            {
                "receiver": each.receiver,
                "message": each.name,
                **each.message.place(settings),
                "since": each.since,
                "waits_for": [
                    {
                        "message": wait.wanted.source if by_id else wait.wanted.name,
                        **wait.wanted.place(settings),
                        "held": wait.held,
                        "diverted": wait.diverted,
                        "came_for": elsewhere.get(wait.wanted),
                    }
                    for wait in each.waits_for
                ],
            }
            for each in found
        ]
        print_json({"held": count, "messages": rows})
        return FINE
    if wanted is not None and not found:
        say(f"{printable(wanted)} is not held: it was delivered, or has not come")
        return FINE
    if wanted is None:
        say(f"{count:,} held" if count else "nothing is held")
    for each in found:
        needs = ", ".join(
            f"{wait.wanted.in_words(settings)} ({_state(wait, elsewhere.get(wait.wanted))})"
            for wait in each.waits_for
        )
        at = "" if each.receiver == "all" else f"{printable(each.receiver)} holds "
        say(f"{at}{each.message.in_words(settings)} for {now - each.since / 1000:,.0f} s: waits for {needs}")
    return FINE


def _is_meant(name: str, wanted: str) -> bool:
    """Whether a message is the one that was asked for: by its name, or by source and number, whatever run of
    the source it is from."""
    process, mark, number = name.rpartition(":")
    return wanted in (name, f"{source_of(process)}{mark}{number}")


def _state(wait: Wait, receiver: str | None) -> str:
    if wait.held:
        return "held itself"
    if wait.diverted:
        return "was diverted"
    if wait.wanted.is_cut:
        return "not complete"
    return "not yet come" if receiver is None else f"came, for receiver {printable(receiver)}"


def _root_causes_first(held: Held) -> tuple[int, bool, str, str, int]:
    """By arrival; of those that came together, first what waits for something that has not come at all."""
    source, _, number = held.name.rpartition(":")
    counted = number.isdigit() and source != ""
    only_held = all(wait.held for wait in held.waits_for)
    if counted:
        return held.since, only_held, held.receiver, source, int(number)
    return held.since, only_held, held.receiver, held.name, 0


def _members_hold(
    state: Path,
    about: Mapping[str, Any],
    wanted: str | None,
    most: int,
    as_json: bool,
    master: str | None,
    conf: Mapping[str, str],
) -> int:
    with session(master, conf, "reading", brief=True) as spark:
        from causet.spark.streams.members.held import settings_in, waiting

        every = list(waiting(spark, state, settings_in(about)))
    found = [each for each in every if wanted in (None, each.message)]
    found = sorted(found, key=lambda each: each.since)[:most]
    if as_json:
        print_json({"held": len(every), "messages": [each._asdict() for each in found]})
        return FINE
    if wanted is not None and not found:
        say(f"{printable(wanted)} is not held: it was delivered, or has not come")
    elif wanted is None:
        say(f"{len(every):,} held" if every else "nothing is held")
    now = time.time()
    for each in found:
        age = now - each.since / 1000
        say(
            f"{printable(each.receiver)} holds {printable(each.message)} for {age:,.0f} s: needs {each.needs}"
        )
    return FINE


def _merge_held(state: Path, as_json: bool, master: str | None, conf: Mapping[str, str]) -> int:
    with session(master, conf, "reading", brief=True) as spark:
        from causet.spark.streams.held import merge_progress

        held, bound, sources, _ = merge_progress(spark, state)
    slowest = sorted(sources.items(), key=lambda each: (each[1], each[0]))
    if as_json:
        print_json({"held": held, "released_up_to": bound, "sources": dict(sources)})
        return FINE
    say(f"{held:,} held" if held else "nothing is held")
    if bound is not None:
        say(f"released up to {bound} µs")
    for name, heard in slowest[:5]:
        say(f"{printable(name)}: heard of last at {heard} µs")
    return FINE
