"""Each rule of cuts, priorities, scopes and bypasses in `deliver`, dropped or weakened, is found."""

from __future__ import annotations

import inspect
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from causet.errors import BadInput
from tests.helpers.attributed import check_cuts, check_incomplete
from tests.helpers.mutating import Change, modules
from tests.streams import test_attributes

MODULES = (
    "streams.channels",
    "streams.memory",
    "streams.awaited",
    "streams.beginning",
    "streams.holding",
    "messages.attributes",
    "messages.links",
    "messages.routes",
    "stability.contents",
    "messages.taken",
    "beginnings.now",
    "streams.bucket",
)
SEEDS = 12
RULES = [
    getattr(test_attributes, name)
    for name in vars(test_attributes)
    if name.startswith("test_") and "of" in inspect.signature(getattr(test_attributes, name)).parameters
]


def mutant(module: str, line: str, becomes: str, rule: str) -> Any:
    return pytest.param(Change(module, line, becomes), id=rule)


MUTANTS = [
    # cuts
    mutant(
        "streams.awaited",
        "lacks = ~_has(memory, keys, entries.number)",
        "lacks = _has(memory, keys, entries.number) & False",
        "a cut is waited for",
    ),
    mutant(
        "streams.awaited",
        "found[found] = is_delivered(memory._delivered(), stream[found], number[found])",
        "pass",
        "of a stream that is known more may be lacking",
    ),
    mutant(
        "streams.awaited",
        "if complete == (reader, urgent):",
        "if complete is not None:",
        "a cut that one reader has is not complete for others",
    ),
    mutant(
        "streams.awaited",
        'return f"{number} {priority}" if priority else str(number)',
        "return str(number)",
        "the urgent wait for another part of a cut",
    ),
    mutant(
        "streams.awaited",
        "keys, first = np.unique(np.concatenate([made.key, cause]), return_index=True)",
        "keys, first = np.unique(np.concatenate([cause, made.key]), return_index=True)",
        "streams keep their names",
    ),
    mutant(
        "streams.awaited",
        "memory.brief[np.searchsorted(memory.stream_key, made.key)] = CUT_ALONE",
        "pass",
        "a cut is forgotten when it is complete",
    ),
    mutant(
        "streams.awaited",
        "& (number[at] >= new.number[rows])",
        "& (number[at] > new.number[rows])",
        "a message is not in its own cut",
    ),
    mutant(
        "streams.awaited",
        "rows = np.flatnonzero(np.isin(head, cuts.row[cuts.waits_for == cut]))",
        "rows = cuts.row[cuts.waits_for == cut]",
        "nor through another one of its groups",
    ),
    mutant(
        "streams.awaited",
        "whole.taken(np.flatnonzero(~np.isin(stream, held.stream[held.part == CUT])))",
        "whole",
        "a cut is held once",
    ),
    mutant(
        "streams.awaited",
        "found: Array = kept[(whole.part != CUT) | np.isin(whole.stream, whole.cause_stream)]",
        "found: Array = kept",
        "a cut for which nothing waits is dropped",
    ),
    mutant(
        "streams.holding",
        "overdue = (held.arrival <= overdue_since) & (held.part != CUT)",
        "overdue = held.arrival <= overdue_since",
        "patience is for messages",
    ),
    mutant(
        "streams.holding",
        "held = with_cuts(self, held, cuts, now)",
        "pass",
        "what is lacking is waited for by a row of its own",
    ),
    mutant(
        "streams.holding",
        "mine = np.flatnonzero(held.part[rows] != CUT)",
        "mine = np.arange(len(rows))",
        "a cut lacks nothing by itself",
    ),
    mutant(
        "streams.holding",
        "found = lacking(self, held, found)",
        "pass",
        "who leaves because a part of a cut was given up says so",
    ),
    mutant(
        "streams.awaited",
        "memory.brief[given_up] = CUT_LACKS",
        "pass",
        "and who leaves later, too",
    ),
    mutant(
        "streams.awaited",
        "whole = np.flatnonzero(held.stream[at] == stream)",
        "whole = np.flatnonzero(held.stream[at] < 0)",
        "what is in a cut that was not waited for is late",
    ),
    mutant(
        "streams.holding",
        "selfish |= of_messages(names_itself(self, new, head, cuts), head)",
        "pass",
        "a cut that has the message itself is refused",
    ),
    mutant(
        "stability.contents",
        "reads = np.array([name in mine for name in cut.groups], np.bool_)[cut.group]",
        "reads = np.ones(len(cut.group), np.bool_)",
        "of a cut only what the reader reads",
    ),
    mutant(
        "stability.contents",
        "mine = Channels(_Reads(self._readers, reader), priority)",
        "mine = Channels(_Reads(self._readers, reader), 0)",
        "of a cut only what is as urgent",
    ),
    mutant(
        "messages.taken",
        "for rows, problem in unknown_cuts(attributes.cut, settings):",
        "for rows, problem in ():",
        "a cut that is not there is no cut",
    ),
    mutant(
        "messages.taken",
        "np.where(part, 0, self.cut[owner])",
        "0 * owner",
        "a message to several groups names a cut",
    ),
    # priorities and scopes
    mutant(
        "messages.attributes",
        "keep = keep & (urgent[which] >= least)",
        "keep = keep & (urgent[which] > least)",
        "what is as urgent is waited for",
    ),
    mutant(
        "messages.attributes",
        "keep = keep & (urgent[which] >= least)",
        "pass",
        "what is less urgent is not waited for",
    ),
    mutant(
        "messages.attributes",
        "least = 0 if found.priority is None else found.priority[owner]",
        "least = 0",
        "the least that is waited for is one's own priority",
    ),
    mutant(
        "messages.attributes",
        "group = pc.coalesce(joined(whole, scope, MARK), group)",
        "pass",
        "causes are in the scope of their message",
    ),
    mutant(
        "messages.attributes",
        "whole = joined(text, found.scope, MARK)",
        "whole = text",
        "each scope has numbers of its own",
    ),
    mutant(
        "messages.attributes",
        'return pc.if_else(pa.array(priority != 0), text, "")',
        'return pc.if_else(pa.array(priority != priority), text, "")',
        "each priority has numbers of its own",
    ),
    mutant(
        "messages.routes", "of_group(plain(each))", "of_group(each)", "who reads a group reads its channels"
    ),
    # bypasses
    mutant(
        "messages.taken",
        "numbers = _once(numbers, attributes.bypass)",
        "pass",
        "a message past the order is known once for all groups",
    ),
    mutant(
        "messages.taken",
        'return joined(length, source, id, ":")',
        'return joined(length, length, id, ":")',
        "a message past the order is known by its source",
    ),
    mutant(
        "messages.taken",
        'return joined(length, source, id, ":")',
        'return joined(length, source, source, ":")',
        "and by its id",
    ),
    mutant(
        "messages.links",
        "odd[pairs[0][counts > 1]] = True\n    mine",
        "mine",
        "a message past the order has each group once",
    ),
    mutant(
        "streams.holding",
        "self.brief[stream[messages.brief]] = UNORDERED",
        "pass",
        "a message past the order is forgotten at the horizon",
    ),
    mutant(
        "streams.memory",
        "~(all_of_one | (self.brief == UNORDERED))",
        "(self.brief != self.brief)",
        "other messages are remembered longer",
    ),
    mutant(
        "streams.memory",
        "mine = mine[np.isin(self.stream_key[mine], self._streams_of(np.concatenate(groups), at))]",
        "pass",
        "what is given up in a group is given up there",
    ),
    mutant(
        "streams.memory",
        "self.channel_key[self.channel_group == self.lost_group[at]]",
        "self.channel_key[:0]",
        "a group is all of its channels",
    ),
    # readers that change
    mutant(
        "streams.holding",
        "counted[at[~seen]] = True",
        "pass",
        "a number that a beginning counts is not of the message",
    ),
    mutant(
        "streams.bucket", "if listed and name not in listed}", "if False}", "a reader that left gets nothing"
    ),
    mutant(
        "streams.bucket",
        "if len(before) and before[0] != key[0] and not self.settings.begins:",
        "if False:",
        "other readers need to begin",
    ),
]


def survives(made: dict[str, Any]) -> bool:
    for rule in RULES:
        with TemporaryDirectory() as folder:
            place = {"tmp_path": Path(folder)} if "tmp_path" in inspect.signature(rule).parameters else {}
            rule(**place, of=made)
    for seed in range(SEEDS):
        with TemporaryDirectory() as folder:
            check_cuts(seed, Path(folder) / "place", made)
        check_incomplete(seed, made)
    return True


def test_unchanged_nothing_is_found() -> None:
    with modules(None, MODULES) as made:
        assert survives(made)


@pytest.mark.parametrize("change", MUTANTS)
def test_a_broken_rule_is_found(change: Change) -> None:
    with modules(change, MODULES) as made:
        try:
            survives(made)
        except (AssertionError, BadInput, IndexError, KeyError, ValueError, pytest.fail.Exception):
            return
    pytest.fail("survived")
