"""Readers of groups that overlap, served as workers serve them: rows in, copies by bucket, rows out."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from causet.delivery import Delivered
from causet.kernels.streams.holding import Holding
from causet.readers import ALL, readers_of
from causet.spark.streams import bucket
from causet.spark.streams.beginnings import now as beginnings_now
from causet.spark.streams.beginnings.kept import Beginnings
from causet.spark.streams.beginnings.plan import changes
from causet.spark.streams.books import Books
from causet.spark.streams.bucket import COUNTS
from causet.spark.streams.messages import routes
from causet.spark.streams.messages.settings import Settings
from causet.spark.streams.pack import from_blob, to_blob
from causet.spark.streams.parquet import buckets_of
from causet.spark.streams.state import SEGMENT_BITS, Segments
from tests.helpers.grouped import Sent, check_statuses, due, execution, shuffled
from tests.helpers.holding import InMemory

Row = dict[str, Any]
FORGED = " forged"
"""What follows the name in the id of a message that has the number of another one."""
BUCKETS = 3
NESTED = pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))
FORMS: dict[str, pa.Schema] = {
    "envelope": pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("causalversion", pa.int64()),
            ("causalprocess", pa.string()),
            ("causaldomain", pa.string()),
            ("causalgroups", pa.string()),
            ("causalnumbers", pa.string()),
            ("causaldeps", pa.string()),
            ("sequence", pa.string()),
            ("causalcut", pa.string()),
            ("causalpriority", pa.string()),
            ("causalscope", pa.string()),
            ("causalbypass", pa.string()),
        ]
    ),
    "maps": pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("process", pa.string()),
            ("groups", pa.list_(pa.string())),
            ("numbers", pa.map_(pa.string(), pa.int64())),
            ("deps", NESTED),
        ]
    ),
    "packed": pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("numbers", pa.map_(pa.string(), pa.int64())),
            ("deps", pa.binary()),
        ]
    ),
}


def packed(past: Mapping[str, Mapping[str, int]]) -> bytes:
    """Packed entries, by the words of the format."""
    found = b"\x02"
    for group, entries in past.items():
        name = group.encode()
        found += struct.pack("<H", len(name)) + name + struct.pack("<I", len(entries))
        for process, number in entries.items():
            found += struct.pack("<QH", number, len(process.encode())) + process.encode()
    return found


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def row_of(sent: Sent, form: str = "envelope", run: str = "1") -> Row:
    """A message as a row of a form."""
    process, numbers, past, mark = sent.stamped
    about = {"id": sent.name if mark == 1 else f"{sent.name}{FORGED}", "source": process}
    if form == "maps":
        deps = [(group, list(entries.items())) for group, entries in past.items()]
        return {**about, "groups": list(numbers), "numbers": list(numbers.items()), "deps": deps}
    if form == "packed":
        return {**about, "numbers": list(numbers.items()), "deps": packed(past)}
    row = {**about, "causalversion": 2, "causalgroups": text(sorted(numbers))}
    if len(numbers) == 1:
        row["sequence"] = f"{next(iter(numbers.values())):020}"
    return {**row, "causalnumbers": text(numbers), "causaldeps": text(past)}


def envelope(
    name: str,
    process: str,
    numbers: dict[str, int],
    past: dict[str, dict[str, int]] | None = None,
    **more: Any,
) -> Row:
    return {**row_of(Sent(name, (process, numbers, past or {}, 1), frozenset())), **more}


def write_batches(folder: Path, messages: Sequence[Sent], size: int, first: int = 0) -> None:
    """Files of so many messages each."""
    folder.mkdir(exist_ok=True)
    for number, at in enumerate(range(0, len(messages), size), first):
        rows = [row_of(each) for each in messages[at : at + size]]
        beside = folder / f".{number:05}"
        beside.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        beside.replace(folder / f"{number:05}.jsonl")


class Served:
    """Some readers; every batch finds only what the last one saved."""

    def __init__(
        self,
        readers: Mapping[str, Iterable[str]] | str | None,
        policy: str = "wait",
        patience: int | None = None,
        form: str = "envelope",
        made: Mapping[str, Any] | None = None,
    ) -> None:
        modules = {"messages.routes": routes, "streams.bucket": bucket, **(made or {})}
        self.bucket, self.route = modules["streams.bucket"], modules["messages.routes"]
        self.holding = modules["streams.holding"].Holding if made else Holding
        self.now = modules.get("beginnings.now", beginnings_now)
        self.schema = FORMS[form]
        envelope = form == "envelope"
        self.settings = Settings(
            policy=policy,
            patience=patience,
            horizon=10**9,
            by=None,
            receiver=None,
            source="source",
            sequence="sequence",
            causes="causaldeps" if envelope else "deps",
            parent=None,
            buckets=BUCKETS,
            most_held=10**6,
            domain="causaldomain" if envelope else None,
            process=("causalprocess",) if envelope else ("process",) if form == "maps" else (),
            version="causalversion" if envelope else None,
            numbers="causalnumbers" if envelope else "numbers",
            groups="causalgroups" if envelope else "groups" if form == "maps" else None,
            readers=readers_of(readers),
            grouped=True,
            begins=True,
            columns=tuple(self.schema.names),
        )
        self.saved: dict[int, tuple[bytes, Segments, InMemory]] = {}
        self.counts: dict[str, int] = {}
        self.held = 0

    def step(self, rows: Sequence[Row], now: int, last: bool = True, ended: bool = False) -> list[Row]:
        """What leaves with a batch."""
        table = pa.Table.from_pylist(list(rows), self.schema)
        if self.settings.routed:
            batches = list(self.route.Route(self.settings)(iter(table.to_batches()))) if rows else []
            packs = [each for batch in batches for each in batch.to_pylist()]
        else:
            blob = to_blob(table) if rows else None
            here = int(buckets_of(pa.array([ALL]), BUCKETS)[0])
            packs = [{"bucket": here, "read": len(rows), "copies": 0, "unread": 0, "rows": blob}]
        buckets = {each["bucket"] for each in packs} | self.saved.keys()
        left: list[Row] = []
        reports = []
        for number in sorted(buckets):
            mine = [each for each in packs if each["bucket"] == number]
            empty = (self.holding.empty().to_bytes(), Segments(InMemory(), 0), InMemory())
            memory, segments, marks = self.saved.get(number, empty)
            held = self.holding.from_bytes(memory)
            before = len(held)
            serving = self.bucket.Bucket(self.settings, held, segments, marks)
            for each in mine:
                serving.was_read(each["read"], each["copies"], each["unread"])
            blobs = [each["rows"] for each in mine if each["rows"] is not None]
            tables = list(serving.step(blobs, now, now if ended else None, last=last))
            left += [each for table in tables for each in table.to_pylist()]
            self.saved[number] = (held.to_bytes(), segments, marks)
            reports.append((before, serving.report()))
        counts = {
            name: sum(report[name] for _, report in reports)
            for name in (reports[0][1] if reports else ())
            if isinstance(reports[0][1][name], int) and name != "oldest"
        }
        self.held = counts.pop("held", 0)
        books = Books(sum(before for before, _ in reports), counts, self.held)
        assert books.balance, str(books)
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        return left

    def restart(self, readers: Mapping[str, Iterable[str]], folder: Path, now: int) -> list[Row]:
        """Others read from now on: what leaves with the batch that lets this count."""
        before, since = self.settings.readers, readers_of(readers)
        self.settings = replace(self.settings, readers=since)
        kept = Beginnings(folder)
        kept.begin()
        heads = {number: self.holding.from_bytes(saved[0]) for number, saved in self.saved.items()}
        self.now.begin_now(
            kept, self.now.State(heads, self._rows, self.settings), before, changes(before, since)
        )
        kept.written(-1, before, since)
        return self.begin(kept, now)

    def begin(self, kept: Beginnings, now: int = 0) -> list[Row]:
        """What leaves when a beginning counts that was written down; run twice, as after a kill."""
        self.settings = replace(self.settings, beginning=kept.counting())
        saved, counts, held = deepcopy(self.saved), dict(self.counts), self.held
        first = self._beginning(now)
        self.saved, self.counts, self.held = saved, counts, held
        assert self._beginning(now) == first
        assert not self._beginning(now), "it counts once"
        return first

    def _rows(self, bucket: int) -> Iterator[tuple[int, pa.Table]]:
        for (segment,), (blob,) in self.saved[bucket][1]._store.values.items():  # type: ignore[attr-defined]
            yield segment, from_blob(blob)

    def _beginning(self, now: int) -> list[Row]:
        left: list[Row] = []
        for number in range(BUCKETS):
            empty = (self.holding.empty().to_bytes(), Segments(InMemory(), 0), InMemory())
            memory, segments, marks = self.saved.get(number, empty)
            held = self.holding.from_bytes(memory)
            before = len(held)
            serving = self.bucket.Bucket(self.settings, held, segments, marks)
            left += [each for table in serving.begin(number, now) for each in table.to_pylist()]
            self.saved[number] = (held.to_bytes(), segments, marks)
            counts = {name: count for name, count in serving.report().items() if name in COUNTS}
            books = Books(before, counts, len(held))
            assert books.balance, str(books)
            for name, count in counts.items():
                self.counts[name] = self.counts.get(name, 0) + count
            self.held += len(held) - before
            places = {(int(at) >> SEGMENT_BITS,) for at in held.place if at >= 0}  # the others are cuts
            assert places == set(segments._store.values)
        return left


def some_readers(rng: random.Random, groups: Sequence[str]) -> dict[str, list[str]]:
    return {
        f"r{number}": rng.sample(groups, rng.randrange(1, len(groups) + 1))
        for number in range(rng.randrange(1, 5))
    }


def check_order(left: Sequence[Row], made: Sequence[Sent], readers: dict[str, list[str]]) -> None:
    """For each reader: what it got is indexed 0, 1, 2, …, nothing twice, and nothing before its past."""
    pasts = {each.name: each.past for each in made}
    got: dict[str, list[str]] = defaultdict(list)
    for each in left:
        if each["status"] != "diverted":
            assert each["index"] == len(got[each["receiver"]])
            got[each["receiver"]].append(each["id"].removesuffix(FORGED))
    for reader, names in got.items():
        assert reader in readers and len(names) == len(set(names))
        places = {name: at for at, name in enumerate(names)}
        assert all(places[cause] < at for name, at in places.items() for cause in pasts[name] & places.keys())


def check_waiting(seed: int, form: str = "envelope", of: Any = None) -> None:
    """With `wait`, after every batch, each reader has exactly what it must have."""
    rng = random.Random(seed)
    made, groups = execution(rng)
    readers = some_readers(rng, groups)
    served = Served(readers, form=form, made=of)
    came: set[str] = set()
    left: list[Row] = []
    read = forged = 0
    for now, batch in enumerate(shuffled(rng, made)):
        left += served.step([row_of(each, form) for each in batch], now)
        read += len(batch)
        forged += sum(each.stamped[3] != 1 for each in batch)
        came |= {each.name for each in batch}
        for reader, reads in readers.items():
            got = {
                each["id"] for each in left if each["receiver"] == reader and each["status"] == "delivered"
            }
            assert {name.removesuffix(FORGED) for name in got} == due(made, came, reads)
    check_order(left, made, readers)
    mine = {group for reads in readers.values() for group in reads}
    assert served.counts.get("read", 0) == read
    if read and not forged:
        unread = [each.name for each in made if not mine & set(each.stamped[1])]
        assert (served.counts["unread"] == 0) == (not set(unread) & came)
        assert served.counts["conflicts"] == served.counts["diverted"] == 0


class Executions:
    """Many executions as one stream: each has processes, groups and readers of its own."""

    def __init__(self, seed: int, count: int) -> None:
        self.rng = random.Random(seed)
        self.made: list[list[Sent]] = []
        self.readers: dict[str, list[str]] = {}
        self.messages: list[Sent] = []
        for number in range(count):
            made, groups = execution(self.rng, 12, 8, 40)
            made = [_within(each, number) for each in made]
            self.made.append(made)
            self.readers |= {
                f"{number}/{reader}": [f"{number}/{group}" for group in reads]
                for reader, reads in some_readers(self.rng, groups).items()
            }
            self.messages += [each for batch in shuffled(self.rng, made) for each in batch]
        self.messages = [each for each in self.messages if each.stamped[3] == 1]

    def check(self, left: Sequence[Row], came: Sequence[Sent]) -> int:
        """Each reader has what is due, in causal order; and how many deliveries that is."""
        names = {each.name for each in came}
        got: dict[str, list[str]] = defaultdict(list)
        for each in sorted(left, key=lambda each: each["index"]):
            assert each["index"] == len(got[each["receiver"]]) and each["status"] == "delivered"
            got[each["receiver"]].append(each["id"])
        wanted = 0
        for reader, reads in self.readers.items():
            made = self.made[int(reader.partition("/")[0])]
            must = due(made, names, reads)
            assert set(got[reader]) == must and len(got[reader]) == len(must)
            places = {name: at for at, name in enumerate(got[reader])}
            pasts = {each.name: each.past for each in made}
            assert all(places[c] < at for name, at in places.items() for c in pasts[name] & places.keys())
            wanted += len(must)
        return wanted

    def in_turn(self) -> list[list[Sent]]:
        """The first message of each execution, then the second of each, and so on."""
        mine: dict[str, list[Sent]] = defaultdict(list)
        for each in self.messages:
            mine[each.name.partition("/")[0]].append(each)
        return [[each for each in some if each is not None] for some in zip_longest(*mine.values())]

    def check_ended(self, left: Sequence[Row], diverted: Sequence[Row], policy: str) -> Counter[str]:
        """What each reader has when patience is over for all that came: how often there is which status.

        With `divert`, it has what is due, and the rest is diverted. With `flag` it has all that came for it;
        flagged is what waits itself, by its stamp, for something that never came.
        """
        came = {each.name for each in self.messages}
        got: dict[str, list[Row]] = defaultdict(list)
        aside: dict[str, list[Row]] = defaultdict(list)
        for each in sorted(left, key=lambda each: each["index"]):
            got[each["receiver"]].append(each)
        for each in diverted:
            assert each.get("problem") is None
            aside[each["receiver"]].append(each)
        assert got.keys() | aside.keys() <= self.readers.keys()
        found: Counter[str] = Counter()
        for reader, reads in self.readers.items():
            made = self.made[int(reader.partition("/")[0])]
            rows = [*got[reader], *aside[reader]]
            mine = {each.name for each in made if set(each.stamped[1]) & set(reads)} & came
            assert {each["id"] for each in rows} == mine and len(rows) == len(mine)
            if policy == "divert":
                assert {each["id"] for each in got[reader]} == due(made, came, reads)
            else:
                assert not aside[reader]
                flagged = {each["id"] for each in rows if each["status"] == "flagged"}
                assert flagged == {e.name for e in made if e.name in mine and _lacks(made, e, reads, came)}
            left_rows = [
                Delivered("", 0, each["id"], each.get("index"), each["status"], 0.0, each["missing"])
                for each in rows
            ]
            check_statuses(left_rows, made, reads, policy, 0)
            found.update(each["status"] for each in rows)
        return found


def _lacks(made: Sequence[Sent], sent: Sent, reads: Collection[str], came: Collection[str]) -> bool:
    """Whether the stamp names something for a reader of these groups that never came; or the message before
    it in one of its groups did not."""
    here = {
        (each.stamped[0], group, number): each.name
        for each in made
        for group, number in each.stamped[1].items()
    }
    process, numbers, past, _ = sent.stamped
    needs = [(process, group, number - 1) for group, number in numbers.items() if number > 1]
    needs += [(name, group, number) for group, entries in past.items() for name, number in entries.items()]
    return any(here[need] not in came for need in needs if need[1] in reads)


def _within(sent: Sent, number: int) -> Sent:
    """The same message, in an execution with a number."""
    process, numbers, past, mark = sent.stamped
    return Sent(
        f"{number}/{sent.name}",
        (
            f"{number}/{process}",
            {f"{number}/{group}": each for group, each in numbers.items()},
            {f"{number}/{g}": {f"{number}/{p}": n for p, n in each.items()} for g, each in past.items()},
            mark,
        ),
        frozenset(f"{number}/{name}" for name in sent.past),
    )
