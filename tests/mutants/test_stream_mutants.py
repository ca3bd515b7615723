"""Each rule of the merge of streams, of stamping, and of sinks and checkpoints, dropped or weakened: a check
that passes without the change must show it.

The definitions are here once more, in a few naive lines; nothing that is expected was computed by the code.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput, BadStamp, CausetError
from causet.spark.streams.merge.rows import Times, problems
from causet.spark.streams.pack import FAULT, SIZE
from causet.stamp import HEARTBEAT
from tests.helpers.mutating import Change, modules, source_of
from tests.helpers.stream_fakes import Chat, Messages, Planned, Written
from tests.helpers.stream_faults import (
    IS_BEAT,
    MERGER,
    Defined,
    Handle,
    MergeInMemory,
    Message,
    beat,
    check_books,
    key,
    merge_parts,
    message,
    status_of,
)

Check = Callable[[dict[str, Any], Path], None]
FOUND = (AssertionError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError, CausetError)
FOUND_TOO = (OSError, pa.ArrowException, Warning)
MUTANTS: list[Any] = []
CHECKS: dict[str, tuple[Check, tuple[str, ...]]] = {}
"""By name: the check, and the modules that it makes anew."""


def check_of(*names: str) -> Callable[[Check], Check]:
    def noted(check: Check) -> Check:
        CHECKS[check.__name__.removeprefix("check_")] = check, names
        return check

    return noted


def mutant(check: str, module: str, line: str, becomes: str, rule: str) -> None:
    MUTANTS.append(pytest.param(check, Change(module, line, becomes), id=rule.replace(" ", "-")))


# ---------------------------------------------------------------- the merge, by its definition

SLICE = 20


MERGE = (
    "rcclock",
    "streams.pack",
    "streams.state",
    *MERGER,
)


@check_of(*MERGE)
def check_merge(made: dict[str, Any], folder: Path) -> None:
    """Random batches, split among workers; what leaves, in which order, from where, and what is told."""
    merging = merge_parts(made)
    made["merge.packers"].SLICE = made["merge.slices"].SLICE = SLICE
    made["streams.pack"].BLOB_ROWS, made["streams.state"].OUT_ROWS = 7, 2
    for seed in range(120):
        case = Messages(seed, merging)
        more = ("causaldomain", FAULT, SIZE)
        query, defined = MergeInMemory(merging, case.settings, more), Defined(case.settings)
        held = 0
        for batch in case.batches:
            first = defined.bound
            clock = case.draw.choice([None, None, case.draw.randint(0, 1)])
            expected = defined.step(batch, clock)
            middle = case.draw.randint(0, len(batch))
            shares = [share for share in (batch[:middle], batch[middle:]) if share]
            left = query.step(shares, case.draw, clock=clock)
            check_rows(left.rows, expected)
            check_layout(left, defined, first)
            check_reports(left.reports, batch, expected, defined)
            held = check_books(left.reports, held)
            check_state(query, defined)


def check_rows(rows: list[Message], expected: dict[str, list[Message]]) -> None:
    found = [(row["subject"], row["status"]) for row in rows]
    aside, late, released = (
        [(row["subject"], status_of(row, status)) for row in wanted] for status, wanted in expected.items()
    )
    assert sorted(found[: len(aside)]) == sorted((name, "diverted") for name, _ in aside)
    assert sorted(found[len(aside) : len(aside) + len(late)]) == sorted(late)
    assert found[len(aside) + len(late) :] == released, "behind what leaves by the side, and in order"
    said = {row["subject"]: row for row in expected["diverted"]}
    for row in rows:
        assert (row["problem"] is None) == (row["status"] != "diverted")
        if row["status"] == "diverted":
            assert word_of(said[row["subject"]]) in row["problem"]
        assert not [name for name in row if name.startswith("__causet_")]


def word_of(row: Message) -> str:
    """A part of the problem that is told about a row."""
    if row.get("code") is None:
        process = row["source"] if row.get("process") is None else row["process"]
        return f"has the number of another message: process {process}, sequence {row['sequence']}, but"
    if row["code"] == 0:
        return "for its own reason"
    if row.get("too large"):
        return f"is larger than the sink takes: {row[SIZE]} bytes, 99 at most"
    return problems(0)[row["code"]].partition(" above")[0]


def check_layout(left: Any, defined: Defined, first: int | None) -> None:
    """The stretch of time that is released is cut evenly, at slices, into as many pieces as there are
    partitions."""
    parts = defined.settings.parts
    placed = [
        (part, defined_rc(row, defined) // SLICE)
        for part, row in zip(left.parts, left.rows, strict=True)
        if row["status"] == "delivered"
    ]
    assert all(0 <= part < parts for part in left.parts)
    if not placed or defined.bound is None:
        return
    begin = (min(defined.came) if first is None else first) // SLICE
    width = -(-((defined.bound - 1) // SLICE - begin + 1) // parts)
    for part, at in placed:
        assert all(abs(at - other) < width for its, other in placed if its == part)


def defined_rc(row: Message, defined: Defined) -> int:
    (rc,) = {each["rc"] for each in defined.gone if each["subject"] == row["subject"]}
    return int(rc)


def check_reports(
    reports: list[Message], batch: list[Message], expected: dict[str, list[Message]], defined: Defined
) -> None:
    names = ("read", "delivered", "late", "diverted", "refused", "conflicts", "duplicates", "heartbeats")
    told = {name: sum(each[name] for each in reports) for name in names}
    aside = [row for row in expected["diverted"] if row not in defined.conflicts]
    assert told == {
        "read": len(batch),
        "delivered": len([row for row in expected["delivered"] if row.get("code") is None]),
        "late": len([row for row in expected["late"] if row.get("code") is None]),
        "diverted": len(aside),
        "refused": len([row for row in aside if not row.get("too large")]),
        "conflicts": len(defined.conflicts),
        "duplicates": defined.duplicates,
        "heartbeats": len(
            [row for row in (*expected["delivered"], *expected["late"]) if row.get("code") == IS_BEAT]
        ),
    }
    assert len(reports) == defined.settings.buckets
    assert {each["part"] for each in reports} == {0}
    assert sum(each["held"] for each in reports) == len(defined.held)
    assert {each["bound"] for each in reports} == {defined.bound}
    oldest = [each["oldest"] for each in reports if each["held"]]
    assert min(oldest, default=None) == min((row["rc"] for row in defined.held), default=None)
    smallest, name = defined.slowest()
    when = "no time" if smallest is None else f"{smallest} µs"
    waits = name is not None and not defined.settings.by_clock
    blocked = f"{name}, heard of last at {when}" if waits else None
    assert {each["blocked"] for each in reports if each["held"]} <= {blocked}


def check_state(query: MergeInMemory, defined: Defined) -> None:
    """A segment stays for as long as a row in it is held; a domain, for as long as a message is known."""
    least = 0 if defined.bound is None else defined.bound - defined.settings.horizon
    lately = [row for row in defined.gone if row["rc"] >= least]
    known, remembered = [*defined.held, *lately], 0
    for handle in query.handles:
        assert handle.head.now is not None
        memory = query.module.Memory.from_bytes(handle.head.now[3])
        remembered += len(memory.released["rc"])
        named = {row.get("causaldomain") or "all" for row in known}
        assert len(memory.domains) < 2 or set(memory.domains) <= named
        processes = {key(row)[2] for row in known}
        assert len(memory.processes) < 2 or set(memory.processes) <= processes
        assert {number for (number,) in handle.rows.values} == {int(each) >> 32 for each in memory.place}
        kept = [query.module.from_blob(blob).num_rows for (blob,) in handle.rows.values.values()]
        assert sum(kept) >= len(memory.place)
    assert remembered == len(lately)


@check_of(*MERGE)
def check_strict(made: dict[str, Any], folder: Path) -> None:
    """What would be diverted ends the query, and is named."""
    merging = merge_parts(made)
    settings = merging.MergeSettings(merging.FOUND, 5, 0, (), (), 200, 2, 2, None, True)
    fine, other = message("a", 1, 100, 100, "one"), message("a", 1, 100, 100, "another one")
    query = MergeInMemory(merging, settings, (FAULT, "type"))
    query.step([[fine, fine, beat("a", 200, 200)]], now=300)
    number = "a row (source a, sequence 1) has the number of another message: process a, sequence 1, but"
    refuses(lambda: query.step([[other]], now=300), number)
    refuses(
        lambda: query.step([[{**fine, FAULT: "is not JSON"}]], now=300), "sequence 1) is not JSON; without"
    )
    nothing = "a row (without source and sequence) has no source; without --strict it is diverted"
    refuses(lambda: query.step([[message(None, None, 1, 1, "")]], now=300), nothing)


def home_of(line: str) -> str:
    """Which part of the merge has this line."""
    (found,) = [part for part in list(MERGER)[1:] if line in source_of(part)]
    return found


def merges(line: str, becomes: str, rule: str, module: str | None = None) -> None:
    mutant("merge", module or home_of(line), line, becomes, rule)


mutant("strict", "merge.slices", "if self.settings.strict:", "if False:", "strict is strict")
SLOWEST = "return min(found) if found else (NEVER, None)"
merges(SLOWEST, "return max(found) if found else (NEVER, None)", "the slowest source counts")
merges(
    SLOWEST, "return sorted(found)[min(1, len(found) - 1)] if found else (NEVER, None)", "each source counts"
)
BOUND = "self._heard() - self.settings.delta - self.settings.epsilon"
merges(BOUND, "self._heard() - self.settings.epsilon", "delta is waited for")
merges(BOUND, "self._heard() - self.settings.delta", "epsilon is waited for")
merges("max(slowest, self.clock) if", "slowest if", "the clock releases")
merges("max(slowest, self.clock) if", "self.clock if", "the sources release beside the clock")
merges(
    "if self.settings.by_clock else slowest", "if True else slowest", "the clock releases if it is asked to"
)
merges("shown = [each * MS", "shown = [each", "a clock shows ms")
merges(f"max(before, {BOUND})", BOUND, "the bound never falls")
merges(" if name not in self.settings.exclude]", "]", "who is excluded is not waited for")
merges("**dict.fromkeys(self.settings.sources, NEVER), ", "", "an expected source is waited for")
merges(
    "np.maximum(memory.progress[numbers], list(progress.values()))",
    "list(progress.values())",
    "progress never falls",
)
merges("= max(value, seen.progress.get(name, NEVER))", "= value", "progress adds up")
merges(
    "np.maximum.at(largest, sources.indices.to_numpy(zero_copy_only=False), r)",
    "largest[sources.indices.to_numpy(zero_copy_only=False)] = r",
    "the largest r of a batch counts",
)
merges(
    "yield seen.packed(self.settings.buckets)",
    "yield seen.packed(1)",
    "every bucket hears how far the sources are",
)
LATE_IF = 'late, free, beat = keys["rc"] < before,'
merges(LATE_IF, LATE_IF.replace("before", "NEVER"), "who is late is marked")
merges(LATE_IF, LATE_IF.replace("<", "<="), "who stands at the bound is not late")
merges(', keys["rc"] < after', ', keys["rc"] <= after', "released is what is below the bound")
merges("    if not same.any():", "    if True:", "copies are known")
merges("here[:gone] = here[copies] = ", "here[:gone] = ", "copies are dropped")
merges("= here[conflicts] = False", "= False", "a conflict is not merged")
merges("other = prints != prints[stays]", "other = np.zeros(len(rows), np.bool_)", "a conflict is not a copy")
merges("other = prints != prints[stays]", "other = ~first", "a copy is not a conflict")
merges("return rows[~first & ~other]", "return rows[~first]", "a conflict is not counted as a copy too")
merges("(rows, prints, rows >= known, group)", "(rows, prints, group)", "what was there before stays")
merges("(rows, prints, rows >= known, group)", "(rows, rows >= known, group)", "the smallest one stays")
merges(
    "PRINT: fingerprints(table, payload_columns(payload)).view(np.int64)",
    "PRINT: fingerprints(table, []).view(np.int64)",
    "the payload is compared",
)
merges("yield self._aside(conflicting)", "yield from ()", "a conflict leaves by the side")
merges("pa.array(conflicts - known)", "pa.array(conflicts * 0)", "it is the conflict that leaves")
merges(
    "memory.held[key], new[key]]) for key in KEPT}\n        order",
    "-1 - memory.held[key], new[key]]) for key in KEPT}\n        order",
    "a copy of what is held is known",
)
merges(
    "{key: np.concatenate([memory.released[key], memory.held[key], new[key]])",
    "{key: np.concatenate([-1 - memory.released[key], memory.held[key], new[key]])",
    "a copy of what was released is known",
)
for name in ("rc", "r", "process", "sequence", "domain"):
    merges(
        "    for key in KEYS:\n        same[1:]",
        f"    for key in [each for each in KEYS if each != '{name}']:\n        same[1:]",
        f"copies have the same {name}",
    )
ORDER = 'ascending(keys["rc"], keys["r"], process, keys["sequence"], domain)'
merges(ORDER, 'ascending(keys["r"], process, keys["sequence"], domain)', "ordered by rc")
merges(ORDER, 'ascending(keys["rc"], process, keys["sequence"], domain)', "ordered by r")
merges(ORDER, 'ascending(keys["rc"], keys["r"], keys["sequence"], domain)', "ordered by process")
merges(ORDER, 'ascending(keys["rc"], keys["r"], process, domain)', "ordered by sequence")
merges(ORDER, 'ascending(keys["rc"], keys["r"], process, keys["sequence"])', "ordered by domain")
merges(
    ORDER, 'ascending(keys["rc"], keys["r"], keys["sequence"], process, domain)', "process before sequence"
)
merges(ORDER, 'ascending(keys["rc"], process, keys["r"], keys["sequence"], domain)', "r before process")
merges(
    'process = ranks(self.memory.processes, keys["process"])',
    'process = keys["process"]',
    "processes by name",
)
merges(
    "processes_of(table, self.settings).dictionary",
    'text_column(table.column("source")).dictionary',
    "numbers run by process",
)
merges(
    'domain = ranks(self.memory.domains, keys["domain"])',
    'domain = keys["domain"]',
    "domains by name",
)
merges(
    'np.argsort(np.argsort(np.array(names, object), kind="stable"))',
    'np.argsort(np.array(names, object), kind="stable")',
    "sources by their rank",
)
merges(".fill_null(ALL).dictionary", '.fill_null("").dictionary', "no domain is the domain all")
merges("        memory.forget_names()\n", "", "a name without messages is forgotten")
merges('self.processes = self._used("process", self.processes)', "pass", "processes are forgotten")
merges('self.domains = self._used("domain", self.domains)', "pass", "domains are forgotten")
merges("each[key] = np.searchsorted(used, each[key])", "pass", "names keep their messages")
merges(">= after - self.settings.horizon", ">= after", "released messages are remembered")
merges(
    ">= after - self.settings.horizon", ">= after - self.settings.horizon + 1", "remembered until the horizon"
)
merges(">= after - self.settings.horizon", ">= NEVER", "what is beyond the horizon is forgotten")
merges("part = (max(at, low) - low) *", "part = (at % 2) *", "partitions stand in the order of time")
merges("part = (max(at, low) - low) *", "part = 0 *", "every partition has its piece of time")
merges("// (high - low + 1)", "// max(high - low, 1)", "no partition beyond the last")
merges("(after - 1) // SLICE", "after // SLICE + 1", "the stretch ends below the bound")
merges("first = before if before != NEVER else memory.lowest", "first = before", "a stretch begins somewhere")
merges(
    "first = before if before != NEVER else memory.lowest",
    "first = memory.lowest",
    "a stretch begins at the last bound",
)
merges(
    "lowest if memory.lowest == NEVER else min(memory.lowest, lowest)",
    "lowest",
    "the lowest of all batches counts",
)
merges("least if seen.lowest is None else min(seen.lowest, least)", "least", "the lowest of a batch counts")
merges("(codes == IS_BEAT) | (codes == FINE)", "codes == FINE", "a heartbeat has a place in the order")
merges("(codes != FINE) & (codes != IS_BEAT)", "codes != FINE", "a heartbeat is not diverted")
merges(
    '"sequence": np.where(beat, 0, times["sequence"])',
    '"sequence": times["sequence"]',
    "beats have no number",
)
merges("pa.array([status, BEAT])", "pa.array([status, status])", "a heartbeat has a status of its own")
merges("len(rows) - beats, HEARTBEATS", "len(rows), HEARTBEATS", "a heartbeat is not a message")
merges("HEARTBEATS: beats}", "HEARTBEATS: 0}", "heartbeats are counted")
merges(
    "fine = fine.filter(pa.array(stamped))",
    "fine = fine.drop_null()",
    "a refused row is no progress",
)
merges("stamped = messages | (codes", "stamped = (codes == FINE) | (codes", "a heartbeat is progress")
merges(
    ".index(TOO_LARGE))\n        if not",
    ".index(problems(0)[0]))\n        if not",
    "a large message is progress",
)
merges("seen.read += sum(batch.num_rows for batch in held)", "pass", "rows are counted where they are read")
merges(
    "seen.read += sum(batch.num_rows for batch in held)",
    "seen.read = sum(batch.num_rows for batch in held)",
    "all rows are counted",
)
merges("        if seen.read:\n", "        if seen.progress:\n", "rows that say nothing of sources count too")
merges("read=[self.read, *nothing]", "read=[self.read] * buckets", "a row is read once")
merges("yield Row(part=0, slice=None", "yield Row(part=None, slice=None", "a report passes the shuffle")
merges("refused=int((~large).sum())", "refused=len(codes)", "a large message is a message")
merges("diverted=len(codes), ", "", "what is diverted is counted")
merges("told[row] if each == FAULTY else each", "each", "a fault is told in its own words")
merges("self.count(duplicates=len(copies), conflicts", "self.count(conflicts", "copies are counted")
merges("len(copies), conflicts=len(conflicts))", "len(copies))", "conflicts are counted")
merges("                table = table.filter(pa.array(~refused))\n", "", "a refused row is not merged")
merges(
    "yield self._aside(self._diverted(table.filter(pa.array(refused)), codes[refused]))",
    "self._diverted(table.filter(pa.array(refused)), codes[refused])",
    "a refused row leaves by the side",
)
merges(
    "yield 0, NEVER + 1, leaving", "yield self.settings.parts - 1, 2**40, leaving", "who is late leaves first"
)
merges("rc // SLICE % self.settings.buckets", "rc % self.settings.buckets", "a slice is in one bucket")
merges("sorted(blobs, key=lambda each: each[:2])", "blobs", "blobs are put in order")
merges(
    "sorted(blobs, key=lambda each: each[:2])",
    "sorted(blobs, key=lambda each: (each[0], -each[1]))",
    "blobs of a slice too",
)
merges("if name.startswith(OWN)]\n", 'if name == f"{OWN}problem"]\n', "columns of our own do not leave")
LOADED = 'names, values("progress"), bound, lowest, keys("held"), values("place"), keys("released"), *others'
for what, becomes in {
    "names": LOADED.replace("names", "sorted(names)"),
    "progress": LOADED.replace('values("progress")', "np.full(len(names), NEVER)"),
    "the bound": LOADED.replace("bound", "NEVER"),
    "the lowest": LOADED.replace("lowest", "NEVER"),
    "what is held": LOADED.replace('keys("held")', "_no_keys()").replace('values("place")', "nothing()"),
    "places": LOADED.replace('values("place")', 'values("place") * 0'),
    "what was released": LOADED.replace('keys("released")', "_no_keys()"),
    "processes and domains": LOADED.replace("*others", "*map(sorted, others)"),
}.items():
    merges(LOADED, becomes, f"{what} of the last batch")
merges("self.save(slices.memory.to_bytes(), segments)", "pass", "state is saved")
merges("[self.bound, self.lowest]", "[self.lowest, self.bound]", "state is saved as it is read")
merges("            self.number += 1\n", "", "a segment has a number of its own", "streams.state")
merges("self._store.removeKey((old,))", "pass", "a segment goes with its last row", "streams.state")
merges(
    "places[new] = (self.number << SEGMENT_BITS) + which.reshape(-1)",
    "pass",
    "rows are found where they are kept",
    "streams.state",
)
merges(
    "begins[np.searchsorted(which, segments)] + rows",
    "rows",
    "segments are told apart",
    "streams.state",
)
merges(
    "self._head.update((self.version, self.fixed, segments.number, memory))",
    "self._head.update((self.version, self.fixed, 0, memory))",
    "numbers of segments go on",
    "streams.state",
)


# ---------------------------------------------------------------- stamping

STAMP = ("rcclock", "envelope", "given", "identity", "journal", "knowledge", "stamp")


@check_of(*STAMP)
def check_stamps(made: dict[str, Any], folder: Path) -> None:
    """Numbers, pasts, times and what was not sent, by their definitions, through restarts."""
    for seed in range(12):
        home = folder / f"stamps {seed} {made['stamp'].__name__}"
        home.mkdir(exist_ok=True)
        for old in home.iterdir():
            old.unlink()
        Chat(made["stamp"], home, seed).run(120)


def test_no_number_is_used_again_though_the_file_was_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after a stamp whose line was one too many for the file."""
    from causet import Stamper, stamp

    monkeypatch.setattr(stamp, "JOURNAL_LINES", 4)
    for seen in range(8):
        anna, ben = Stamper("anna"), Stamper("ben", file=tmp_path / f"ben {seen}")
        for _ in range(seen):
            ben.saw(anna.stamp())
        first = ben.stamp()
        ben.close()
        again = Stamper("ben", file=tmp_path / f"ben {seen}")
        assert again.unsent == [first], seen
        assert int(again.stamp()["sequence"]) == 2


def test_a_disk_that_was_full_for_a_while_leaves_a_file_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causet import Stamper

    ben = Stamper("ben", file=tmp_path / "ben")
    ben.stamp("1")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, raw: write(file, raw[:20]))
        with pytest.raises(BadInput, match="the disk is full"):
            ben.stamp("2")
    second = ben.stamp("2")
    ben.close()
    assert Stamper("ben", file=tmp_path / "ben").unsent[1:] == [second]


def test_an_effect_is_later_than_its_cause_though_its_source_began_again(tmp_path: Path) -> None:
    """ben, whose clock is behind by 40 ms, hears anna, is killed, and answers."""
    from causet import RcClock, Stamper

    def begun() -> Stamper:
        return Stamper("ben", clock=RcClock(50, lambda: 1_000_000, None), file=tmp_path / "ben")

    question = Stamper("anna", clock=RcClock(50, lambda: 1_040_000, None)).stamp()
    begun().saw(question)
    answer = begun().stamp()
    assert json.loads(answer["causaldeps"]) == {"all": {question["causalprocess"]: 1}}
    assert answer["causaltime"] == "1040001 1000000", question["causaltime"]


def stamps(line: str, becomes: str, rule: str, module: str = "stamp") -> None:
    mutant("stamps", module, line, becomes, rule)


def remembers(line: str, becomes: str, rule: str) -> None:
    mutant("stamps", "knowledge", line, becomes, rule)


remembers(
    "            self.stamped(envelope)\n",
    "            self.unsent[key_of(envelope)] = envelope\n",
    "no number is used again",
)
remembers(
    "        self.known_in(scope_of(envelope)).stamp(channels_of(envelope))\n", "", "each number is used once"
)
stamps("DEPS: canonical(past)}", 'DEPS: "{}"}', "a message says what is in its past")
stamps("NUMBERS: canonical(numbers),", "NUMBERS: canonical({groups[0]: 1}),", "a message says its numbers")
remembers(
    "            self.known_in(*scope or [None]).saw(process, numbers, past)",
    "            pass",
    "what was seen is known after a restart",
)
stamps(
    "if stamped is not None and process != self.process:",
    "if stamped is not None and process == self.process:",
    "others teach a source something",
)
stamps("            self._journal.append(line)\n", "            pass\n", "what was seen is written")
stamps(
    "raw = _line(line)\n",
    "raw, self.kept = getattr(self, 'kept', b''), _line(line)\n",
    "it is written before it leaves",
    "journal",
)
stamps("            self._journal.append({", "            dict({", "a stamp is written")
remembers(
    "        if self.keeps:\n            self.unsent[key_of(envelope)] = envelope\n",
    "",
    "what was not sent is kept",
)
remembers(
    "        else:\n            self.unsent[key_of(envelope)] = envelope\n",
    "",
    "what was not sent is kept in a new file",
)
remembers(
    '            self.unsent.pop(tuple(line["sent"]), None)', "            pass", "what was sent is not kept"
)
remembers(
    "return min(numbers.items()) if",
    'return ("", min(numbers.values())) if',
    "messages to groups are told apart",
)
remembers(
    "                envelope = {**envelope, DEPS: canonical(known.frontier)}\n",
    '                envelope = {**envelope, DEPS: "{}"}\n',
    "what was not sent has its past after a restart",
)
remembers(
    '{group: dict(entries) for group, entries in state["frontier"].items()}',
    "{}",
    "the past outlives a new file",
)
remembers(
    '{group: dict(entries) for group, entries in state["covered"].items()}',
    "{}",
    "numbers outlive a new file",
)
remembers(
    ', self.rc = state["cut"], state["used"], state.get("rc")',
    ' = state["cut"], state["used"]',
    "time outlives a new file",
)
remembers('        self.knows_time(line.get("rc"))\n', "", "time that was heard outlives a restart")
remembers(
    "self.knows_time(when.rc if when is not None else None)", "pass", "time does not go back in a restart"
)
stamps(
    "            self.clock.not_before(self._knowledge.rc)\n",
    "            pass\n",
    "a clock knows what the file knows",
)
stamps(
    "                self.clock.heard(when, tick=tick, source=process)\n",
    "                pass\n",
    "the clock hears what was seen",
)
stamps(
    '            self._happened({"rc": when.rc})\n',
    "",
    "the time of a heartbeat is not given again after a restart",
)
stamps(
    "return {VERSION_NAME: ENVELOPE_VERSION, **process}",
    "return process",
    "a stamp says of which version it is",
)
stamps(
    "self._journal.begin(self._state(), self._knowledge.kept())\n\n\n",
    "self._journal.begin(self._state(), [])\n\n\n",
    "a new file keeps what was not sent",
)


@check_of(*STAMP)
def check_journal(made: dict[str, Any], folder: Path) -> None:
    """On the disk before it leaves, if asked for; a file is whole before it takes the place of another; and
    one that is torn, another's or from the future is no good."""
    stamp = made["stamp"]
    file = folder / "journal"
    file.unlink(missing_ok=True)
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace"):
            patch.setattr(os, name, partial(noted_call, calls, name, getattr(os, name)))
        stamper = stamp.Stamper("p", file=file, durable=True)
        assert calls == ["fsync", "replace"]
        stamper.stamp("1")
        assert calls == ["fsync", "replace", "fsync"]
        stamp.Stamper("q", file=folder / "quick").stamp()
        assert calls == ["fsync", "replace", "fsync", "fsync", "replace"]
    (folder / "quick").unlink()
    written = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [each["stamped"]["data"] for each in written[1:]] == ["1"]
    whole = file.read_bytes()
    stamper.stamp("2")
    refuses(lambda: stamp.Stamper("p", file=file), "another stamper has this file open")
    stamper.close()
    file.write_bytes(file.read_bytes()[:-3])
    with stamp.Stamper("p", file=file) as stamper:
        assert int(stamper.stamp()["sequence"]) == 2
    file.write_bytes(whole.replace(b'"version": 3', b'"version": 4'))
    refuses(lambda: stamp.Stamper("p", file=file), "version 4")
    for broken in (b'"used": "1"', b'"number": 0', b'"used": -1', b'"used": 0.0'):
        file.write_bytes(whole.replace(b'"used": 0', broken))
        refuses(lambda: stamp.Stamper("p", file=file), "line 1: not a line of a stamper")
    file.write_bytes(whole.replace(b'"process": "p~', b'"process": "q~'))
    refuses(lambda: stamp.Stamper("p", file=file), "is no process of source")
    for line in (
        {"source": "q", "sequence": "2"},
        {"source": "p", "causalprocess": json.loads(whole.splitlines()[0])["process"]},
    ):
        file.write_bytes(whole + json.dumps({"stamped": line}).encode() + b"\n")
        refuses(lambda: stamp.Stamper("p", file=file), "not a line of a stamper")
    for old, new in (
        (b'"causalnumbers": "{\\"all\\":1}"', b'"causalnumbers": "{\\"all\\":2}"'),
        (b'"frontier": {}', b'"frontier": {"g": {"q": 1}}'),
        (b'"used": 0', b'"used": 1'),
    ):
        assert old in whole
        file.write_bytes(whole.replace(old, new).replace(b'"sequence": "0', b'"other": "0'))
        refuses(lambda: stamp.Stamper("p", file=file), "not a line of a stamper")
    file.write_bytes(whole)
    refuses(lambda: stamp.Stamper("q", file=file), 'this is the file of "p"')
    assert file.read_bytes() == whole
    check_locks(made, folder)


def check_locks(made: dict[str, Any], folder: Path) -> None:
    """The file under its name is locked at every moment, and free once its stamper is closed or refused."""
    stamp, journal = made["stamp"], made["journal"]
    file, link, others = folder / "locked", folder / "link", []
    file.unlink(missing_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    first = stamp.Stamper("p", file=file)
    replace, flock = os.replace, journal.fcntl.flock
    begins = partial(first._journal.begin, first._state(), [])

    def in_use(name: Path = file) -> None:
        refuses(lambda: stamp.Stamper("p", file=name), "another stamper has this file open")

    def replaced(*paths: Any) -> None:
        replace(*paths)
        in_use()

    def locked(number: int, how: int) -> None:
        others.append(number)
        if len(others) == 1:
            begins()
        flock(number, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replaced)
        begins()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.fcntl, "flock", locked)
        in_use()
    in_use(link)
    first.stamp()
    first.close()
    refuses(first.stamp, "this stamper was closed")
    with pytest.raises(BadInput) as caught:
        stamp.Stamper("q", file=file)
    with stamp.Stamper("p", file=link) as again:
        in_use()
        assert int(again.stamp()["sequence"]) == 2
        for journal_open in list(journal._OPEN):
            assert journal_open._file is None or journal_open is again._journal
        journal._after_fork()
        refuses(again.stamp, "before the process forked")
    assert caught.value is not None


@check_of(*STAMP)
def check_stampable(made: dict[str, Any], folder: Path) -> None:
    """What cannot be written is refused before a number or a tick is used up."""
    stamp = made["stamp"]
    odd = {"source": "q", "sequence": "1", "causaldeps": '{"\\ud800":1}'}
    odder = {"source": "q", "causalnumbers": '{"g":1}', "causaldeps": '{"g":{"\\ud800":1}}'}
    for file in (None, folder / "stampable"):
        if file is not None:
            file.unlink(missing_ok=True)
        with stamp.Stamper("p", clock=stamp.RcClock(50, lambda: 1000, None), file=file) as stamper:
            for data in (object(), float("nan"), "\ud800"):
                refuses(lambda: stamper.stamp(data), "cannot be written as JSON")  # noqa: B023
            refuses(lambda: stamper.stamp(subject=5), "the attribute subject must be text")
            refuses(lambda: stamper.stamp(id=""), "the attribute id must be text")
            refuses(lambda: stamper.stamp(type=stamp.HEARTBEAT), "is for heartbeats")
            refuses(lambda: stamper.saw({"source": "\ud800", "sequence": "1"}), "a source", BadStamp)
            for each in (odd, odder):
                refuses(lambda: stamper.saw(each), "cannot be the name of a process", BadStamp)  # noqa: B023
            for group in ("", [], ["a", "a"], ["a", "\ud800"], 5):
                refuses(lambda: stamper.stamp(to=group), "a message")  # noqa: B023
            assert (stamper.numbers, stamper.clock.largest) == ({}, 0)
            stamper.stamp("fine", subject="")
    for arguments in (("\ud800",), ("p", "\ud800")):
        refuses(lambda: stamp.Stamper(*arguments), "must be text")  # noqa: B023


OLD = {"version": 1, "source": "p", "domain": "all", "sequence": 4, "seen": {"q": 2}, "direct": {}, "rc": 7}


@check_of(*STAMP)
def check_identity(made: dict[str, Any], folder: Path) -> None:
    """A run that knows nothing of another one has an identity of its own; one that goes on has the same."""
    stamp, file = made["stamp"], folder / "identity"
    file.unlink(missing_ok=True)
    first, second = stamp.Stamper("p"), stamp.Stamper("p")
    said = [each.stamp() for each in (first, second)]
    assert len({each["causalprocess"] for each in said}) == len({each["id"] for each in said}) == 2
    assert [each["causalprocess"] for each in said] == [first.process, second.process]
    assert [each["source"] for each in said] == ["p", "p"] and first.process.startswith("p~")
    second.saw(said[0])
    assert json.loads(second.stamp()["causaldeps"]) == {"all": {second.process: 1, first.process: 1}}
    again = stamp.Stamper.restore(first.save())
    assert again.process == first.process and int(again.stamp()["sequence"]) == 2
    with stamp.Stamper("p", file=file) as begun:
        begun.stamp()
    with stamp.Stamper("p", file=file) as goes_on:
        assert goes_on.process == begun.process and int(goes_on.stamp()["sequence"]) == 2
    refuses(lambda: stamp.Stamper("p", file=file, run="1"), "this is the file of")
    refuses(lambda: stamp.Stamper("p", run="a~b"), "the name of a run")
    assert stamp.Stamper("p", run="1").process == "p~1"
    clock = stamp.RcClock(50, lambda: 9000, None)
    old = stamp.Stamper.restore(json.dumps(OLD), clock=clock)
    envelope = old.stamp()
    assert (old.process, envelope.get("causalprocess"), int(envelope["sequence"])) == ("p", None, 5)
    assert envelope["causaltime"] == "9000 9000" and clock.largest == 9000
    clock = stamp.RcClock(50, lambda: 6000, None)
    assert stamp.Stamper.restore(json.dumps(OLD), clock=clock).stamp()["causaltime"] == "7001 6000"
    file.write_text("".join(json.dumps(each) + "\n" for each in (OLD, {"saw": ["q", 3, {}], "rc": 8})))
    with stamp.Stamper("p", clock=stamp.RcClock(50, lambda: 6000, None), file=file) as taken:
        assert taken.process == "p" and taken.stamp()["causaltime"] == "8001 6000"
    with stamp.Stamper("p", file=file) as clockless:
        clockless.stamp()
    with stamp.Stamper("p", clock=stamp.RcClock(50, lambda: 6000, None), file=file) as later:
        assert later.stamp()["causaltime"] == "8002 6000"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made["identity"], "wall_clock", lambda: 36**3)
        runs = {made["identity"].new_run() for _ in range(50)}
        assert len(runs) == 50 and {each[:11] for each in runs} == {"00000001000"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 0)
        refuses(first.stamp, "before the process forked")


def noted_call(calls: list[str], name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    calls.append(name)
    return call(*arguments)


def refuses(act: Callable[[], object], said: str, kind: type[Exception] = BadInput) -> None:
    try:
        act()
    except CausetError as error:
        assert isinstance(error, kind) and said in str(error)
    else:
        raise AssertionError("it was accepted")


def journals(line: str, becomes: str, rule: str, module: str = "journal") -> None:
    mutant("journal", module, line, becomes, rule)


def identities(line: str, becomes: str, rule: str, module: str = "stamp") -> None:
    mutant("identity", module, line, becomes, rule)


identities("self.rc = max(rc, self.rc or 0)", "pass", "time outlives a life without a clock", "knowledge")
identities("new_run() if run is None else run", 'run or "1"', "every start is a new process")
identities(
    "{PROCESS: self.process} if self.process != self.source else {}", "{}", "an envelope names its process"
)
identities(
    "{PROCESS: self.process} if self.process != self.source else {}",
    "{PROCESS: self.process}",
    "who was taken over is its source",
)
identities(
    'self.source, self.process = state["source"], state["process"]',
    'self.source = state["source"]',
    "an identity outlives a restart",
    "knowledge",
)
identities(
    "if self._named and knowledge.process != process:", "if False:", "the file of another run is refused"
)
identities(
    "f\"{self.process}:{f'{group}:{number}'",
    "f\"{f'{group}:{number}'",
    "an id names its process",
)
identities(
    "process != self.process:\n                news",
    "not process.startswith(self.source):\n                news",
    "a predecessor is another one",
)
identities(
    "        elif os.getpid() != self._born:", "        elif False:", "a forked process is another one"
)
identities(" + _digits(secrets.randbits(64), _RANDOM)", "", "two that start together differ", "identity")
identities("_digits(wall_clock(), _MOMENT)", '""', "runs sort by their start", "identity")
identities("not RUN.fullmatch(run)", "False", "a run has a plain name", "identity")
identities("rc * TICKS_PER_MS if ms", "rc if ms", "times of an old file count ms", "knowledge")
identities('"source" if ms else "process"', '"process"', "an old file goes on as its source", "knowledge")
identities('{process: record["sequence"]} if', "{} if", "an old file goes on with its number", "knowledge")
identities(
    "line = record if self._old is None else",
    "line = record if True else",
    "an old file is taken over",
    "knowledge",
)
identities("    return process\n", "    return source\n", "messages are known by their process", "envelope")


def stampables(line: str, becomes: str, rule: str, module: str = "stamp") -> None:
    mutant("stampable", module, line, becomes, rule)


stampables("        check_data(data)\n", "", "data is checked")
stampables(
    "allow_nan=False).encode()\n    except UnicodeEncodeError:\n        raise",
    "allow_nan=True).encode()\n    except UnicodeEncodeError:\n        raise",
    "what is not a number is not data",
    "given",
)
stampables("if not empty and not is_text(value):", "if False:", "attributes are text", "given")
stampables('value == "" and name not in ("id", "type")', 'value == ""', "an id is not empty", "given")
stampables(
    '    if attributes.get("type") == HEARTBEAT:', "    if False:", "a message is not a heartbeat", "given"
)
stampables("        if not is_text(source):", "        if not source:", "a source's own name is text")
stampables("        if not is_text(group):", "        if not group:", "a group is text", "given")
stampables("        if group in groups[:at]:", "        if False:", "a group is there once", "given")
stampables("    if not groups:", "    if False:", "a message has a group", "given")
stampables(
    "not isinstance(source, str) or not is_text(source)",
    "not isinstance(source, str)",
    "a sender is text",
    "envelope",
)
stampables("        if not is_text(process):\n", "        if False:\n", "a cause's name is text", "envelope")
stampables(
    '        if not (is_group if kind == "group" else is_text)(name):\n',
    "        if False:\n",
    "a name in a past is text",
    "envelope",
)
journals("fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass", "a file is locked")
journals(
    "if os.path.samestat(os.fstat(file), self._path.stat()):",
    "if True:",
    "the file that is locked is the one under the name",
)
journals(
    "                self._lock(file)\n                with os.fdopen",
    "                with os.fdopen",
    "a new file is locked",
)
journals(
    "                self._lock(file)\n                with os.fdopen",
    "                beside.replace(self._path), self._lock(file)\n                with os.fdopen",
    "a new file is locked before it is there",
)
journals("Path(os.path.realpath(path))", "path", "a link is the file that it points to")
journals("        journal.close(FORKED)", "        pass", "a forked process has no stamper")
journals("        _OPEN.add(self)\n", "", "a forked process knows what was open")
journals(
    "            except BaseException:\n                self._journal.close()\n                raise\n",
    "            finally:\n                pass\n",
    "a stamper that is refused lets go of the file",
    "stamp",
)
journals(
    "            if self._journal is not None:\n                self._journal.close()\n",
    "            pass\n",
    "a closed stamper lets go of the file",
    "stamp",
)


journals(
    "            if self._durable:\n                os.fsync(self._file)\n", "", "durable is on the disk"
)
journals("            if self._durable:", "            if True:", "the disk is waited for if asked for")
journals("                os.fsync(stream.fileno())\n", "", "a new file is whole")
journals('raw[: raw.rfind(b"\\n") + 1].splitlines()', "raw.splitlines()", "a torn line never counted")
journals(
    "type(version) is not int or not 1 <= version <= VERSION",
    "False",
    "another version of a stamper is refused",
    "knowledge",
)
journals(
    "        if name in line and not fits(line[name]):",
    "        if False:",
    "a damaged file is refused",
    "knowledge",
)
journals("    for name in STATE:\n", "    for name in ():\n", "a file with a gap is refused", "knowledge")
journals(
    "        if process != self.process:\n            raise",
    "        if False:\n            raise",
    "a message of another is refused",
    "knowledge",
)
journals(
    "        elif DEPS not in envelope or any(",
    "        elif False and any(",
    "a message that does not follow is refused",
    "knowledge",
)
journals(
    'if known["covered"].get(group, {}).get(name, 0) < number:',
    "if False:",
    "a past that is not covered is refused",
    "knowledge",
)
journals('if state["used"] > state["cut"]:', "if False:", "a cut that was used is known", "knowledge")
journals(
    "if process != source and source_of",
    "if False and source_of",
    "a process is a run of its source",
    "knowledge",
)
journals("type(value) is int and least <= value", "least <= value", "a number is an integer", "knowledge")
journals("least <= value <= most", "value <= most", "a number counts from 1", "knowledge")
journals("if knowledge.source != self.source:", "if False:", "the file of another is refused", "stamp")


# ---------------------------------------------------------------- the clock


@check_of("rcclock", "envelope")
def check_clock(made: dict[str, Any], folder: Path) -> None:
    """r is the wall clock, r + c the largest value known; and what cannot be is refused, and changes
    nothing. ε is 50 ticks."""
    module = made["rcclock"]
    time = module.RcTime
    now = SimpleNamespace(wall=1000, steady=5, slow=0)

    def look() -> int:
        shown: int = now.wall
        now.wall, now.steady, now.slow = now.wall + now.slow, now.steady + now.slow, 0
        return shown

    def begun() -> Any:
        now.wall, now.steady = 1000, 5
        return module.RcClock(0.05, look, lambda: now.steady)

    def pass_by(wall: int, steady: int) -> None:
        now.wall += wall
        now.steady += steady

    clock = begun()
    assert clock.event() == (1000, 1000)
    assert clock.event() == (1001, 1000), "no two events have the same r + c"
    assert clock.event(time(1020, 1010), time(1015, 1015)) == (1021, 1000), "above the largest one heard"
    pass_by(5, 5)
    assert clock.event() == (1022, 1005), "what was known stays known"
    pass_by(100, 100)
    assert clock.event(time(1020, 1010)) == (1105, 1105), "the wall clock has caught up"
    clock.heard(time(1115, 1111), time(1109, 1109))
    assert clock.largest == 1115 and clock.event() == (1116, 1105)
    clock.not_before(1120)
    clock.not_before(1110)
    assert clock.event() == (1121, 1105)

    clock = begun()
    clock.event()
    assert clock.event(time(1050, 1050)) == (1051, 1000), "ahead by ε may be"
    refuses(lambda: clock.event(time(1051, 1051)), "0.051 ms ahead of this one", module.ClockJumped)
    assert clock.event(time(1100, 999)) == (1101, 1000) and begun().reach == 101
    refuses(lambda: begun().event(time(1101, 1000)), "0.101 ms ahead", module.ClockJumped)
    refuses(lambda: begun().event(time(1102, 1000)), "c is 0.102 ms", BadStamp)
    refuses(lambda: begun().event(time(1040, 1040), time(1051, 1051)), "0.051 ms ahead", module.ClockJumped)
    refuses(lambda: begun().heard(time(1051, 1051)), "0.051 ms ahead", module.ClockJumped)
    clock = begun()
    refuses(lambda: clock.event(time(1040, 1040), time(1102, 1000)), "c is 0.102 ms", BadStamp)
    assert clock.event() == (1000, 1000), "what is refused changes nothing"
    clock = begun()
    clock.heard(time(1100, 900), tick=1000)  # of a clock that counts ms, c may be larger by one of them
    assert clock.event() == (1101, 1000)

    def far(c: int) -> None:
        begun().heard(time(900 + c, 900), tick=1000)

    refuses(lambda: far(1100), "knows of a clock that is 1 ms ahead", module.ClockJumped)
    refuses(lambda: far(1101), "c is 1.101 ms", BadStamp)

    large = module.RcClock(50, look, lambda: now.steady)  # ε is 50,000 ticks, and slack 1,000 of them
    now.wall = 100_000
    refuses(lambda: large.event(time(151_001, 100_000)), "knows of a clock", module.ClockJumped)
    refuses(lambda: large.heard(time(151_001, 100_000), source="p"), 'a message of "p"', module.ClockJumped)
    assert large.event(time(151_000, 100_000)) == (151_001, 100_000), "a hop of less than a tick adds one"
    large.heard(time(190_000, 150_000), tick=1000)  # clocks that count ms run ahead of each other

    for jump, said in ((52, "ahead by 0.052 ms"), (-52, "back by 0.052 ms")):
        clock = begun()
        clock.event()
        pass_by(jump, 0)
        refuses(clock.event, f"jumped {said}", module.ClockJumped)
        assert clock.event().r == now.wall, "said once"
        pass_by(51, 0)
        clock.event()  # ε, and a tick by which the clocks round
    for jump, first in ((52, True), (52, False), (-52, True), (-52, False)):
        clock = begun()
        if not first:
            clock.event()
        now.slow = 80  # a process that had to wait between two looks saw no jump
        clock.event()
        clock.event()
        pass_by(jump, 0)
        refuses(clock.event, "0.052 ms", module.ClockJumped)
    clock = begun()
    clock.not_before(1100)
    assert clock.event() == (1101, 1000)
    clock.not_before(1101)
    refuses(clock.event, "set back", module.ClockJumped)

    assert time.parse("12 5") == (12, 5) == time.parse(str(time(12, 5)))
    for text in ("5 12", f"{2**53} 1", "1", "1 2 3", "-1 -1", "٣ ٣", None):
        refuses(lambda text=text: time.parse(text), "causaltime", BadStamp)  # type: ignore[misc]
    time_of = made["envelope"].time_of
    assert time_of({"causaltime": "12 5"}) == (12_000, 5_000)
    assert time_of({"causaltime": "12 5", "causalversion": 2}) == (12, 5)
    assert time_of({"causaltime": "12 5", "causalversion": "2"}) == (12, 5)
    for version in (0, 3, "2 ", True, 2.0, [2]):
        envelope = {"causaltime": "12 5", "causalversion": version}
        refuses(lambda envelope=envelope: time_of(envelope), "causalversion must be", BadStamp)  # type: ignore[misc]


def clocks(line: str, becomes: str, rule: str, module: str = "rcclock") -> None:
    mutant("clock", module, line, becomes, rule)


LARGEST = "self.largest = max(now, self.largest + 1)"
clocks(LARGEST, "self.largest = max(now, self.largest)", "an effect is later than its cause")
clocks("known = max(known, when.rc)", "known = max(known, when.r)", "what others heard of counts")
clocks("known = max(known, when.rc)", "known = when.rc", "the largest one heard counts")
clocks(LARGEST, "self.largest = self.largest + 1", "the clock on the wall counts")
clocks(
    LARGEST,
    "self.largest = max(now, max([0, *(each.rc + 1 for each in received)]))",
    "what was heard before counts",
)
clocks("        self.largest = known\n", "", "what was heard counts")
clocks(
    "            known = max(known, when.rc)\n",
    "            self.largest = known = max(known, when.rc)\n",
    "refused as a whole",
)
clocks("return RcTime(self.largest, now)", "return RcTime(self.largest, self.largest)", "r is the wall clock")
clocks("if when.r > now + self.epsilon:", "if False:", "a clock that is ahead is refused")
clocks(
    "if when.r > now + self.epsilon:",
    "if when.r > now + self.reach:",
    "no clock is ahead by more than epsilon",
)
clocks(
    "if when.r > now + self.epsilon:", "if when.r >= now + self.epsilon:", "a clock may be ahead by epsilon"
)
clocks("if when.rc > when.r + most:", "if False:", "c too large is refused")
AHEAD = "if when.rc > now + self._ahead(tick):"
clocks(AHEAD, "if False:", "a time far ahead is refused")
clocks(AHEAD, AHEAD.replace(">", ">="), "as far ahead as may be")
clocks("min(self.epsilon + SLACK, most)", "most", "what others know of is ahead by epsilon")
clocks("min(self.epsilon + SLACK, most)", "min(self.epsilon, most)", "hops of less than a tick add up")
clocks("min(self.epsilon + SLACK, most)", "self.epsilon + SLACK", "what is stamped next can be read")
clocks("if tick == 1 else most", "", "clocks with long ticks run ahead of each other")
clocks("if when.rc > when.r + most:", "if when.rc >= when.r + most:", "the largest c is fine")
clocks("largest_c(self.epsilon, tick)", "largest_c(self.epsilon)", "c of a clock that counts ms")
clocks("return 2 * epsilon + tick", "return 2 * epsilon", "c has room for a tick")
clocks("round(epsilon * TICKS_PER_MS)", "round(epsilon)", "epsilon is in ms")
JUMP = "if abs(jump) > self.epsilon + 1:"
clocks(JUMP, "if False:", "a jump is refused")
clocks(JUMP, "if jump > self.epsilon + 1:", "a jump back is refused")
clocks(JUMP, "if jump:", "a clock may drift")
clocks(JUMP, JUMP.replace(" + 1", ""), "a clock rounds to a tick")
clocks("            self._apart = least, most\n            raise", "            raise", "a jump is said once")
clocks(
    "        if not jump:\n            self._apart = max(least, low), min(most, high)\n",
    "",
    "a slow look is made good",
)
clocks(
    "self._compare(now - self._steady(), now - before)",
    "self._compare(*[now - self._steady()] * 2)",
    "a wait is not a jump",
)
clocks("if self.largest + 1 > now + self.reach:", "if False:", "a clock that was set back is refused")
clocks("self.largest = max(self.largest, rc)", "self.largest = rc", "what is known does not shrink")
clocks("time.rc < time.r or time.rc >= FAR * tick", "time.rc >= FAR * tick", "r beyond r + c is none")
clocks("time.rc < time.r or time.rc >= FAR * tick", "time.rc < time.r", "a time beyond all is none")
clocks("isinstance(text, str) and text.isascii()", "isinstance(text, str)", "other digits are none")
clocks("tick * int(found[1]), tick *", "int(found[1]), tick *", "r + c is read in ticks")
clocks(
    "return TICKS_PER_MS if version_of(envelope) == 1 else 1", "return 1", "version 1 counts ms", "envelope"
)
clocks('in ("1", "2"):', 'in ("0", "1", "2", "3"):', "other versions are refused", "envelope")


# ---------------------------------------------------------------- state, checkpoints


@check_of("streams.state")
def check_holder(made: dict[str, Any], folder: Path) -> None:
    """State goes on where it was, and that of another version or query is refused."""

    class Idle(made["streams.state"].Holder):  # type: ignore[misc]
        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            return iter(())

    handle = Handle()

    def begun(fixed: str) -> Any:
        holder = Idle(fixed)
        holder.init(handle)
        return holder

    memory, segments = begun("4 buckets").load()
    assert memory is None and segments.number == 0
    segments.number = 7
    begun("4 buckets").save(b"memory", segments)
    memory, segments = begun("4 buckets").load()
    assert memory == b"memory" and segments.number == 7
    refuses(lambda: begun("8 buckets").load(), "made with 4 buckets, and this query has 8 buckets")
    assert handle.head.now is not None
    handle.head.now = (1, *handle.head.now[1:])
    refuses(lambda: begun("4 buckets").load(), "state of version 1")


mutant(
    "holder",
    "streams.state",
    "    if found != read:",
    "    if False:",
    "state of another version is refused",
)
mutant(
    "holder",
    "streams.state",
    "if fixed != self.fixed:",
    "if False:",
    "state of another query is refused",
)
mutant(
    "holder",
    "streams.state",
    "return memory, Segments(self._rows, segment)",
    "return memory, Segments(self._rows, 0)",
    "segments go on",
)


@check_of("streams.checkpoint")
def check_checkpoint(made: dict[str, Any], folder: Path) -> None:
    """What a query was asked is kept, and one that is asked something else is refused."""
    kind = made["streams.checkpoint"].Checkpoint
    home = folder / f"checkpoint {len(list(folder.iterdir()))}"

    def opened(command: str, fixed: dict[str, Any]) -> Any:
        with kind(home) as run:
            return run.opened(command, fixed)

    assert opened("merge", {"buckets": 4}) is None
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace"):
            patch.setattr(os, name, partial(noted_call, calls, name, getattr(os, name)))
        given = {"query": "q", "version": 0, "fixed": 0, "settings": 0}
        kind(home).settle("merge", {"buckets": 4, "form": None}, given, {"epsilon": "1s"})
    assert calls == ["fsync", "replace"], "there as a whole, or not at all"
    found = opened("merge", {"buckets": 4})
    assert found == {
        "version": 2,
        "command": "merge",
        "fixed": {"buckets": 4, "form": None},
        "query": "q",
        "settings": {"epsilon": "1s"},
    }
    name = (home / "name").read_text()
    assert kind(home).look("merge", {"buckets": 4}) == (name, False) and len(name) == 32
    (home / "name").unlink()
    refuses(lambda: opened("merge", {"buckets": 4}), "name is missing")
    (home / "name").write_text(name)
    refuses(lambda: opened("deliver", {"buckets": 4}), "checkpoint of causet merge")
    refuses(lambda: opened("merge", {"buckets": 8}), "made with buckets = 4, and now it is 8")
    refuses(lambda: opened("merge", {"buckets": 4, "form": "x"}), "made with form = null")
    (home / "causet.json").write_text(json.dumps({**found, "version": 1}))
    refuses(lambda: opened("merge", {"buckets": 4}), "checkpoint of version 1")
    for text, said in (
        ("{", "is damaged"),
        ("[1]", "is not the file of a checkpoint"),
        ("{}", "is not the file of a checkpoint"),
    ):
        (home / "causet.json").write_text(text)
        refuses(lambda: opened("merge", {}), said)
    (home / "causet.json").unlink()
    (home / "spark").mkdir()
    assert opened("merge", {}) is None
    (home / "spark/offsets").mkdir()
    refuses(lambda: opened("merge", {}), "checkpoint of something else")
    shutil.rmtree(home / "spark")
    with kind(home) as first:
        first.opened("merge", {})
        refuses(lambda: opened("merge", {}), "another process runs with the checkpoint")
    assert opened("merge", {}) is None
    assert (home / "name").read_text() == name, "a query keeps its name"
    spark = home / "spark"
    for place in ("offsets", "commits", "sources/0"):
        (spark / place).mkdir(parents=True)
    kind(home).check_files()
    for batch, log in ((0, 0), (1, 2), (2, 2)):  # the last one has no new files
        (spark / f"offsets/{batch}").write_text(f'v1\n{{}}\n{{"logOffset":{log}}}')
    here = home / "a b"
    entries = [json.dumps({"path": f"{here.as_uri()}{log}", "batchId": log}) for log in range(3)]
    for log in range(2):
        (spark / f"sources/0/{log}").write_text(f"v1\n{entries[log]}")
    (spark / "sources/0/2.compact").write_text("\n".join(["v1", *entries]))  # now and then Spark joins all
    kind(home).check_files()
    assert kind(home).pending() == 2 and kind(home).files_of(2) == []
    assert kind(home).files_of(1) == [Path(f"{here}1"), Path(f"{here}2")]
    (spark / "offsets/2").unlink()
    refuses(kind(home).check_files, f"{here}{1} is gone")
    Path(f"{here}1").touch()
    refuses(kind(home).check_files, f"{here}{2} is gone")
    for left_out in (False, True):
        kind(home).judge(1, {f"{here}2": "is cut"}, left_out)
        kind(home).check_files()
        assert kind(home).verdicts(1) == ({f"{here}2": "is cut"} if left_out else {})
        assert kind(home).verdicts(0) == {}
    (home / "verdicts/1.json").unlink()
    Path(f"{here}2").touch()
    kind(home).check_files()
    for log in (1, 2):
        Path(f"{here}{log}").unlink()
    kind(home).judge(1, {"a": "is cut"})
    kind(home).judge(2, {"a": "is cut"})
    for moment in (9, 10):
        kind(home).end(moment)
    kind(home).prune()
    assert kind(home).verdicts(1) and len(list((home / "ends").iterdir())) == 2
    (spark / "commits/1").touch()
    kind(home).check_files()
    kind(home).prune()
    assert not kind(home).verdicts(1) and kind(home).verdicts(2)
    assert [each.name for each in (home / "ends").iterdir()] == ["10.json"]
    with kind(folder / f"{home.name} refused/state") as refused:
        refused.opened("merge", {})
        refused.withdraw()
    assert not (folder / f"{home.name} refused").exists()
    with kind(None) as passing:
        passing.settle("merge", {}, {})
        assert passing.folder.exists()
    assert not passing.folder.exists()
    with kind(home) as mine:
        pass
    assert mine.folder.exists()


def checkpoints(line: str, becomes: str, rule: str) -> None:
    mutant("checkpoint", "streams.checkpoint", line, becomes, rule)


@check_of("streams.query")
def check_query(made: dict[str, Any], folder: Path) -> None:
    """A planned batch is run first, alone, with the settings of its plan; files that cannot be read are left
    out of their batch only."""
    module = made["streams.query"]
    home = folder / f"query {len(list(folder.iterdir()))}"
    plain = Planned(module, home / "plain")
    books = plain.go().books
    ran: list[Any] = [("1s", False, [], None, True, "1s"), ("9s", False, [], None, False, "9s")]
    assert plain.calls == [("held",), *ran, ("held",)]
    assert (books.held_before, books.counts, books.held) == (2, {"delivered": 4, "read": 4}, 2)

    damaged = Planned(module, home / "damaged", ["/3b"])
    damaged.later = ["/4a"]
    assert damaged.go().books.unreadable_files == 2 == len(damaged.progress.unreadable)
    assert [call for call in damaged.calls if call != ("held",)] == [
        ("1s", False, [], None, True, "1s"),
        ("1s", False, ["/3b"], b"/3b", True, "1s"),
        ("9s", False, [], None, False, "9s"),
        ("9s", False, ["/4a"], b"/4a", True, "9s"),
        ("9s", False, [], None, False, "9s"),
    ]

    strict = Planned(module, home / "strict", ["/3b"], strict=True)
    refuses(strict.go, "/3b cannot be read: is cut; mend it or take it away, or run without --strict")
    assert strict.kept.pending() == 3 and strict.kept.verdicts(3) == {}
    assert strict.calls[-1] == ("1s", True, [], None, True, "1s"), "strict then and strict now"

    other = Planned(module, home / "other")
    other.query.source = "a topic"
    other.damaged = {"/3a"}
    raises(other.go, ValueError)
    broken = Planned(module, home / "broken")
    broken.broken = True
    raises(broken.go, ValueError)


def raises(act: Callable[[], object], kind: type[Exception]) -> None:
    try:
        act()
    except kind:
        return
    raise AssertionError("it went on")


def queries(line: str, becomes: str, rule: str) -> None:
    mutant("query", "streams.query", line, becomes, rule)


queries("runs.alone(pending, self._settings_of_planned())", "pass", "a planned batch is run first")
queries(
    "runs.alone(pending, self._settings_of_planned())",
    "runs.alone(pending, transform.settings)",
    "a planned batch has its settings",
)
queries(
    "                waits = self._begin(spark, messages)\n                self._settle(columns)\n",
    "                waits = self._begin(spark, messages)\n            self._settle(columns)\n",
    "new settings wait for the planned batch",
)
queries(
    "            runs.alone(pending, self._settings_of_planned())\n        if self.begun is not None:",
    "            runs.alone(pending, self._settings_of_planned())\n        if ():",
    "new settings count",
)
queries("recorded.get(STRICT)) and", "recorded.get(STRICT)) or", "strict then and now is strict")
queries("list(verdicts)))", "()))", "a file with a verdict is left out")
queries("unreadable_rows(blobs.schema, verdicts) if verdicts else None", "None", "a file is named")
queries("query.progress.unreadable.update(verdicts)", "pass", "unreadable files are counted")
queries("            kept.judge(batch, {**known, **found})\n", "", "a verdict is written down")
queries("if not settings.get(STRICT):", "if True:", "strict stops")
queries("        if not found:\n            raise error\n", "", "another error is not a file's")
queries("self.alone(batch, settings)", "pass", "a batch with a verdict is run alone")
queries(
    "held_before = transform.held(spark, kept.spark) if self.begun is not None else 0",
    "held_before = 0",
    "what was held before counts",
)


checkpoints("fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass", "one run at a time")
checkpoints("return planned if planned > committed", "return planned if True", "what is committed has ended")
checkpoints("return planned if planned > committed", "return planned if False", "a batch is run to its end")
checkpoints("if first < entry", "if first <= entry", "files of earlier batches may go")
checkpoints(
    'entry["batchId"] <= last:', 'entry["batchId"] < last:', "files of a batch that did not end must stay"
)
checkpoints("Path(unquote(urlsplit(entry", "Path((urlsplit(entry", "names may have blanks")
checkpoints("and str(path) not in unreadable", "", "a damaged file may go")
checkpoints("return files if left_out else {}", "return files", "strict leaves nothing out")
checkpoints("return files if left_out else {}", "return {}", "a verdict counts")
checkpoints('f"verdicts/{batch}.json", json', '"verdicts/1.json", json', "a verdict is for one batch")
checkpoints("for ended in ends[:-1]:", "for ended in ends:", "the last end stays")
checkpoints("for ended in ends[:-1]:", "for ended in ():", "ends do not pile up")
checkpoints("if batch <= committed:", "if True:", "a verdict stays until its batch is committed")
checkpoints("if batch <= committed:", "if False:", "verdicts do not pile up")
checkpoints(
    "        if self.pending() is not None:\n            return\n        self.b",
    "        self.b",
    "a batch that is run again reads the same ends",
)
checkpoints('"settings": dict(settings or {})}', "**kept}", "a planned batch keeps its settings")
checkpoints(
    "        if not self.name:\n            if", "        if True:\n            if", "a query keeps its name"
)
checkpoints(
    "for folder in (self.ends, *self._made):", "for folder in (self.ends,):", "what is refused leaves nothing"
)
checkpoints('if found["command"] != command:', "if False:", "the checkpoint of another command is refused")
checkpoints('if found["fixed"].get(name) != value:', "if False:", "other settings are refused")
checkpoints(
    'if found["fixed"].get(name) != value:',
    'if found["fixed"].get(name) not in (None, value):',
    "a setting that was none is one too",
)
checkpoints('if found["version"] != VERSION:', "if False:", "a checkpoint of another version is refused")
checkpoints("and any(self.spark.glob(", "and False and any(self.spark.glob(", "what is not ours is refused")
checkpoints("{**kept, **about, ", "{**about, **kept, ", "what is kept does not hide the version")
checkpoints("                os.fsync(stream.fileno())\n", "", "what a query is is on the disk")
checkpoints("        if self.passing:\n", "        if True:\n", "the checkpoint of a user stays")
checkpoints("        if self.passing:\n", "        if False:\n", "a passing checkpoint goes")


# ---------------------------------------------------------------- sinks


def sink_of(made: dict[str, Any], folder: Path, aside: bool = True) -> Any:
    batches = made["streams.file_sink"]
    batches.F = MagicMock()
    batches.fit_for = lambda rows, form: rows
    return batches.FileSink(folder, "jsonl", aside)


@check_of("write.folder", "streams.file_sink")
def check_files(made: dict[str, Any], folder: Path) -> None:
    """A batch that is run again takes the place of itself, whatever its first run left; rows keep their
    order."""
    home = folder / f"sink {len(list(folder.iterdir()))}"
    sink = sink_of(made, home)
    home.mkdir()
    (home / ".left by who was killed").touch()
    sink.check("q", fresh=True)
    assert not home.with_name(f"{home.name}-diverted").exists()
    sink.claim("q", {"command": "deliver", "checkpoint": str(folder), "source": "in"})
    (home / ".left by who was killed").unlink()
    lines = [[f"{number}\n"] for number in range(40)]

    def batch(first: Sequence[list[str]], second: Sequence[list[str]] = ()) -> Any:
        aside = made["streams.file_sink"].ASIDE
        parts = {f"{aside}=false": list(first), f"{aside}=true": list(second)}
        return Written({name: files for name, files in parts.items() if files})

    def found(where: Path) -> list[str]:
        return "".join(file.read_text() for file in sorted(where.glob("[!_]*"))).split()

    sink.write(batch(lines[:14], [["x\n"]]), 0)
    (home / ".batch-0000000001.part").mkdir()
    (home / ".batch-0000000001.part/left by who was killed").touch()
    sink.write(batch(lines[14:18], [["y\n"], ["z\n"]]), 1)
    sink.write(batch([["".join(line for each in lines[14:18] for line in each)]], [["y\nz\n"]]), 1)
    sink.write(batch(lines[18:20]), 2)
    assert found(home) == [str(number) for number in range(20)]
    assert found(home.with_name(f"{home.name}-diverted")) == ["x", "y", "z"]
    (home / ".batch-0000000003.part").mkdir()
    for fresh in (True, False):
        sink.check("q", fresh)
        refuses(partial(sink.check, "r", fresh), "is the sink of another query, causet deliver of in: go on")
    refuses(partial(sink_of(made, home).claim, "r", {}), "is the sink of another query")
    sink_of(made, home).claim("q", {})
    sink.clean()
    assert not [each for each in home.iterdir() if each.name.startswith(".")]
    mark = made["streams.file_sink"].MARK
    for where in (home.with_name(f"{home.name}-diverted"), home):
        (where / mark).unlink()
        refuses(partial(sink.check, "q", False), f"{where} has lost {mark}")
        (where / mark).write_text('{"query": "q"}')
    (home / mark).unlink()
    refuses(partial(sink.check, "q", True), "is not empty, and this is a new query")
    (home / mark).write_text('{"query": "gone", "checkpoint": "nowhere"}')
    refuses(partial(sink.check, "q", True), "whose checkpoint nowhere is gone")

    late = sink_of(made, folder / f"{home.name} late")
    late.claim("q", {})
    late.withdraw()
    assert not late.folder.exists() and not late.folder.with_name(f"{late.folder.name}-diverted").exists()

    alone = sink_of(made, folder / f"{home.name} alone", aside=False)
    alone.claim("q", {})
    assert not alone.folder.with_name(f"{alone.folder.name}-diverted").exists()
    alone.write(Written({"": lines[:3]}), 0)
    alone.write(Written({"": lines[:2]}), 0)
    assert found(alone.folder) == ["0", "1"]
    (folder / "full-diverted").mkdir(exist_ok=True)
    (folder / "full-diverted/batch").touch()
    refuses(lambda: sink_of(made, folder / "full").check("q", fresh=True), "is not empty")


def files(line: str, becomes: str, rule: str, module: str = "streams.file_sink") -> None:
    mutant("files", module, line, becomes, rule)


NAMED = 'file.replace(folder / f"batch-{batch:010}-{number:05}.{self.form}")'
files(
    "                stale.unlink()",
    "                pass",
    "a batch run again leaves nothing of its first run",
)
files("if stale.name not in names:", "if True:", "a batch stays")
files(
    NAMED,
    'file.replace(folder / f"batch-{batch:010}-{number:05}-{id(file)}.{self.form}")',
    "files are named by batch",
)
files('folder.glob(f"batch-{batch:010}-*")', 'folder.glob("batch-*")', "other batches stay")
files("file in sorted(found)]", "file in found]", "parts stand in their order", "write.folder")
files("int(part[2] or 0)", "-int(part[2] or 0)", "pieces of a part stand in their order", "write.folder")
files(
    "self._put(aside, diverted_beside(self.folder), batch)",
    "self._put(aside, self.folder, batch)",
    "what is diverted goes aside",
)
files(
    "        shutil.rmtree(beside, ignore_errors=True)\n        if isinstance",
    "        if isinstance",
    "what was half written is written again",
)
files(
    "            shutil.rmtree(folder, ignore_errors=True)",
    "            pass",
    "what was half written goes away",
)
files("elif _rows_in(folder):", "elif False:", "rows of another query are not mixed in")
files(
    'not each.name.startswith((".", "_"))', 'not each.name.startswith("_")', "what was half written is no row"
)
files("            elif not fresh:\n", "            elif False:\n", "a sink that was made anew is refused")
files(
    "if owner is not None:\n                _check",
    "if owner is not None and not fresh:\n                _check",
    "a lost checkpoint is refused",
)
files('    if owner.get("query") == name:\n        return\n', "    return\n", "a sink has one owner")
files(
    "            else:\n                _check_owner",
    "            elif False:\n                _check_owner",
    "of two queries one gets the sink",
)
files("        os.link(beside, file)", "        os.replace(beside, file)", "an owner stays")
files("    if Path(checkpoint).is_dir():", "    if True:", "a lost checkpoint is told apart")
files(
    "(self.folder, diverted_beside(self.folder)) if self.aside",
    "(self.folder,) if self.aside",
    "the folder beside it too",
)
files(
    "        for folder in self._claimed:\n", "        for folder in ():\n", "what is refused leaves nothing"
)


# ---------------------------------------------------------------- what cannot be a stamp


def impossible(epsilon: int, now: int | None) -> Iterator[tuple[Message, str | None]]:
    """Rows at the edge of what can be, and a word of what is said about them."""
    most, far = 2 * epsilon + 1000, 2**53
    yield message("a", 1, 100, 100, ""), None
    yield message(None, 1, 100, 100, ""), "no source"
    yield message("a", 1, None, 100, ""), "no time"
    yield message("a", 1, 100, None, ""), "no time"
    yield message("a", 1, 0, 0, ""), None
    yield message("a", 1, 0, -1, ""), "has an invalid time"
    yield message("a", 1, 99, 100, ""), "has an invalid time"
    yield message("a", 1, far, far - 1, ""), "has an invalid time"
    yield message("a", 1, 100 + most, 100, ""), None
    yield message("a", 1, 101 + most, 100, ""), f"c above {most / 1000:g} ms,"
    yield message("a", 0, 100, 100, ""), "not between 1 and"
    yield message("a", far - 1, 100, 100, ""), None
    yield message("a", far, 100, 100, ""), "not between 1 and"
    yield message("a", None, 100, 100, ""), "no sequence that is a number"
    yield {**message("a", None, 100, 100, ""), "type": "causet.heartbeats"}, "no sequence that is a number"
    yield {**message("a", 1, 100, 100, ""), FAULT: "broken"}, "is not a message"
    yield {**message(None, 1, 100, 100, ""), FAULT: "broken"}, "is not a message"
    yield {**beat("a", 100, 100), FAULT: "broken"}, "is not a message"
    yield beat("a", 100, 100), HEARTBEAT
    yield {**beat("a", 100, 100), "sequence": 0, SIZE: 10}, HEARTBEAT
    yield {**beat("a", 100, 100), "sequence": far}, HEARTBEAT
    yield beat(None, 100, 100), "no source"
    yield beat("a", None, 100), "no time"
    yield beat("a", 100, -1), "has an invalid time"
    yield beat("a", 101 + most, 100), f"c above {most / 1000:g} ms,"
    if now is None:
        yield message("a", 1, far - 1, far - 1, ""), None
        yield {**message("a", 1, 100, 100, ""), SIZE: 11}, None
        yield {**message("a", 1, 100, 100, ""), "version": 0}, "causalversion that is not 1 or 2"
        yield {**message("a", 1, 100, 100, ""), "version": 2}, None
    else:
        yield {**beat("a", 100, 100), SIZE: 11}, "larger than the sink takes"
        yield message("a", 1, now + epsilon, now + epsilon, ""), None
        yield message("a", 1, now + epsilon + 1, now + epsilon + 1, ""), "ahead of every clock"
        yield beat("a", now + epsilon + 1, now + epsilon + 1), "ahead of every clock"
        yield {**message("a", 1, 100, 100, ""), SIZE: 11}, "larger than the sink takes"
        yield {**message("a", 1, 100, 100, ""), SIZE: 10}, None
        yield {**message("a", 0, 100, 100, ""), SIZE: 11}, "not between 1 and"


def fits(said: str | None, code: int | None) -> bool:
    """Whether a row was judged so."""
    if said == HEARTBEAT:
        return code == IS_BEAT
    return code is None if said is None else code is not None and code >= 0 and said in problems(50)[code]


KINDS = {"source": pa.string(), "type": pa.string(), FAULT: pa.string()}
JUDGED = ("source", "sequence", "rc", "r", "type", FAULT, SIZE, "version")
"""The columns that a row is judged by."""


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> dict[str, bool]:
    """By the rule that is broken, whether all rows are judged right; all of them in one look at the rows."""
    cases = [(now, *each) for now in (None, 5999) for each in impossible(50, now)]
    rows = {
        name: pa.array([row.get(name) for _, row, _ in cases], KINDS.get(name, pa.int64())) for name in JUDGED
    }
    frame = spark.createDataFrame(pa.table({"number": pa.array(range(len(cases))), **rows}))
    columns = []
    for line, becomes, rule in (("", "", UNCHANGED), *STAMPS):
        change = Change("merge.rows", line, becomes) if line else None
        with modules(change, ("rcclock", "merge.rows")) as made:
            judge, times = made["merge.rows"].problem_with, Times("rc", "r", "sequence")
            extra = made["merge.rows"].Extra(True, True, version=F.col("version"))
            code = F.when(F.col("number") < len(list(impossible(50, None))), judge(times, 50, None, extra))
            limited = judge(times, 50, F.lit(5999), extra._replace(most_bytes=10))
            columns.append(code.otherwise(limited).alias(rule))
    found = frame.select("number", *columns).collect()
    assert len(found) == len(cases)
    rules = [UNCHANGED, *(rule for _, _, rule in STAMPS)]
    return {rule: all(fits(cases[row["number"]][2], row[rule]) for row in found) for rule in rules}


UNCHANGED = "nothing"
STAMPS = [
    (
        'nameless=F.col("source").isNull() | (F.col("source") == "")',
        "nameless=F.lit(False)",
        "who has no source is refused",
    ),
    ("rc.isNull() | r.isNull(),", "rc.isNull(),", "who has no r is refused"),
    ("rc.isNull() | r.isNull(),", "r.isNull(),", "who has no rc is refused"),
    ("(r < 0) | (rc < r) |", "(rc < r) |", "a negative time is refused"),
    ("(rc >= (FAR if times", "(rc < (0 if times", "a time beyond all is refused"),
    ("(r < 0) | (rc < r) |", "(r < 0) |", "r beyond r + c is refused"),
    ("rc - r > most_c(epsilon),", "F.lit(False),", "a large c is refused"),
    ("rc - r > most_c(epsilon),", "rc - r > epsilon,", "a possible c is not"),
    ("return largest_c(epsilon, MS)", "return largest_c(epsilon)", "a c of version 1 is possible"),
    ("extra.version == 0", "F.lit(False)", "an unknown version is refused"),
    ("(sequence < 1) | (sequence > MOST_SEQUENCE)", "(sequence > MOST_SEQUENCE)", "number 0 is refused"),
    ("(sequence < 1) | (sequence > MOST_SEQUENCE)", "(sequence < 1)", "a number too large is refused"),
    ("facts.unnumbered & ~facts.beat", "facts.beat & ~facts.beat", "who has no sequence is not a heartbeat"),
    ("facts.unnumbered & ~facts.beat", "facts.unnumbered", "a heartbeat needs no sequence"),
    ("MOST_SEQUENCE)) & ~facts.beat", "MOST_SEQUENCE))", "nor is its sequence looked at"),
    ("        facts.large,\n", "        facts.large & facts.beat,\n", "a large message is refused"),
    ("        facts.large,\n", "        facts.large & ~facts.beat,\n", "a large heartbeat is refused"),
    ("F.col(SIZE) > extra.most_bytes", "F.col(SIZE) >= extra.most_bytes", "the largest one is not"),
    (".eqNullSafe(F.lit(HEARTBEAT))", ".isNotNull()", "only one type is a heartbeat"),
    (".eqNullSafe(F.lit(HEARTBEAT))", ".startswith(HEARTBEAT)", "and no type that begins so"),
    (
        "code = F.when(beat, F.lit(IS_BEAT)",
        "code = F.when(F.lit(False), F.lit(IS_BEAT)",
        "a heartbeat is one",
    ),
    ("faulty=F.col(FAULT).isNotNull()", "faulty=F.lit(False)", "who has a fault is refused"),
    ("None if now is None else r > now + epsilon", "None", "a time ahead of every clock is refused"),
    ("r > now + epsilon", "r > now", "a clock may be ahead by epsilon here"),
    ("in reversed(list(enumerate(faults(", "in (list(enumerate(faults(", "the first fault is named"),
]


@check_of(
    "rcclock",
    "streams.pack",
    "streams.parquet",
    "streams.state",
    "merge.rows",
    "merge.memory",
    "merge.packers",
)
def check_workers(made: dict[str, Any], folder: Path) -> None:
    """Files that workers read and write themselves; and rows that they judge as Spark would."""
    direct, merging = made["streams.parquet"], made["merge.packers"]
    times = Times("rc", "r", "sequence")
    settings = merging.MergeSettings(times, 50, 0, (), (), 0, 1, 1, 10)
    cases = list(impossible(50, 5999))
    schema = pa.schema([(name, KINDS.get(name, pa.int64())) for name in JUDGED])
    rows = pa.RecordBatch.from_pylist([row for row, _ in cases], schema)
    codes = merging.Judge(settings)(rows, 5).column(merging.CODE).to_pylist()
    assert all(fits(said, code) for (_, said), code in zip(cases, codes, strict=True))

    home = Path(mkdtemp(dir=folder))
    columns = {"b": pa.array([5, 6], pa.int32()), "A": ["x", "y"], "more": ["x", "y"]}
    there = pa.table({**columns, "status": ["kept", "diverted"]})
    for name in ("one", "two"):
        pq.write_table(there, home / name)
    wanted = pa.schema([("a", pa.string()), ("b", pa.int64()), ("status", pa.string())])
    named = pa.RecordBatch.from_pylist([{"path": f"file:{home / name}", "now": 7} for name in ("two", "one")])
    seen: list[int] = []

    def prepared(some: pa.RecordBatch, now: int) -> pa.RecordBatch:
        seen.append(now)
        return some

    found = list(direct.FromFiles(wanted, wanted.names, prepared, lambda batches: batches)(iter([named])))
    whole = {"a": None, "b": 5, "status": "kept"}
    expected = [whole, {**whole, "b": 6, "status": "diverted"}]
    assert [row for batch in found for row in batch.to_pylist()] == expected * 2
    assert set(seen) == {7}
    refuses(lambda: list(direct.read(home / "none", wanted)), f"{home / 'none'} cannot be read: No such file")

    pq.write_table(pa.table({"b": ["5"]}), home / "other")
    refuses(lambda: list(direct.read(home / "other", wanted)), 'column "b" is string, and was int64 before')

    direct.TaskContext = MagicMock()
    direct.TaskContext.get().partitionId.return_value = 3
    made["streams.pack"].BLOB_ROWS = 3
    for divides, places in ((True, {"kept": [5] * 4, "aside": [6] * 4}), (False, {"kept": [5, 6] * 4})):
        direct.TaskContext.get().taskAttemptId.return_value = 70 + divides
        task = direct.ToFiles(lambda batches: batches, wanted, home / "out", divides)
        (told,) = task(iter([*found, *found]))
        names = told.column("file").to_pylist()
        assert names == [f"{place}/part-00003-{70 + divides}.parquet" for place in places]
        for place, name in zip(places, names, strict=True):
            assert pq.read_table(home / "out" / name).column("b").to_pylist() == places[place]
    aside = pa.RecordBatch.from_pylist(expected[1:], wanted)
    (told,) = direct.ToFiles(lambda batches: batches, wanted, home / "out", True)(iter([aside]))
    assert told.column("file").to_pylist() == ["aside/part-00003-70.parquet"]
    (nothing,) = direct.ToFiles(lambda batches: batches, wanted, home / "out", True)(iter([]))
    assert nothing.num_rows == 0


def by_workers(line: str, becomes: str, rule: str, module: str = "streams.parquet") -> None:
    mutant("workers", module, line, becomes, rule)


JUDGE = "merge.packers"
by_workers("missing[0] | missing[1],", "missing[0],", "workers refuse who has no r", JUDGE)
by_workers("unnumbered=missing[2]", "unnumbered=nothing", "workers want a sequence", JUDGE)
by_workers(
    "pc.equal(rows.column(TYPE), HEARTBEAT).fill_null(False)",
    "rows.column(TYPE).is_valid()",
    "workers take one type for a heartbeat",
    JUDGE,
)
by_workers("np.where(beat, IS_BEAT, FINE)", "np.where(beat, FINE, FINE)", "workers know a heartbeat", JUDGE)
by_workers(
    "faulty=as_numpy(rows.column(FAULT).is_valid())", "faulty=nothing", "workers refuse a fault", JUDGE
)
by_workers("pc.greater(rows", "pc.greater_equal(rows", "workers let the largest pass", JUDGE)
by_workers("pc.greater(rows", "pc.less(rows", "workers refuse what is too large", JUDGE)
by_workers(
    "in reversed(list(enumerate(found))", "in (list(enumerate(found))", "workers name the first fault", JUDGE
)
by_workers("self.settings.epsilon, in_ticks(now))", "self.settings.epsilon)", "workers know the time", JUDGE)
by_workers("now * MS + (MS - 1)", "now * MS", "nothing of this ms is ahead of it", JUDGE)
by_workers("if field.name in there.names", "if True", "what a file lacks is null")
by_workers("_kind(found) != _kind(wanted) or ", "", "a column of another kind is refused")
by_workers("(KEPT, pc.invert(aside))", "(KEPT, aside)", "what is diverted is not among what is kept")
by_workers("if self.divides else None", "", "where nothing goes aside, everything is kept")
by_workers("-{task.taskAttemptId()}", "", "a task that is run again writes another file")
by_workers(
    "if rows.num_rows:\n                yield place",
    "if True:\n                yield place",
    "no file without rows",
)
by_workers("except (KeyError, pa.ArrowException, OSError)", "except KeyError", "who cannot be read is named")


def survives(check: str, change: Change | None, folder: Path) -> bool:
    made_check, names = CHECKS[check]
    with modules(change, names) as made:
        if change is None:
            made_check(made, folder)
            return True
        try:
            made_check(made, folder)
        except (*FOUND, *FOUND_TOO):
            return False
    return True


@pytest.mark.parametrize("check", list(CHECKS))
def test_unchanged_every_check_passes(check: str, tmp_path: Path) -> None:
    assert survives(check, None, tmp_path)


@pytest.mark.parametrize(("check", "change"), MUTANTS)
def test_a_broken_rule_is_found(check: str, change: Change, tmp_path: Path) -> None:
    assert not survives(check, change, tmp_path), "survived"


def test_unchanged_stamps_are_judged_by_what_can_be(judged: dict[str, bool]) -> None:
    assert judged[UNCHANGED]


@pytest.mark.parametrize("rule", [rule for _, _, rule in STAMPS])
def test_a_broken_rule_of_stamps_is_found(judged: dict[str, bool], rule: str) -> None:
    assert not judged[rule], "survived"
