"""Each rule of the kernel of `deliver`, dropped or weakened: random messages must show it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.grouped import compare_groups
from tests.helpers.holding import compare, compare_circles
from tests.helpers.mutating import Change, modules
from tests.helpers.poisoned import check
from tests.helpers.readers import check_waiting
from tests.kernels import test_holding
from tests.streams import test_readers
from tests.streams.test_poisoned_deliver import (
    test_a_clock_that_is_set_back_does_not_prolong_patience,
    test_a_forged_number_of_another_source_is_a_conflict_with_the_first_that_came,
    test_a_heartbeat_is_counted_and_is_not_a_message,
    test_messages_are_known_by_their_process,
    test_what_follows_a_diverted_message_is_held_and_the_report_says_so,
)

MODULES = (
    "streams.delivered",
    "streams.thresholds",
    "streams.release",
    "streams.marks",
    "streams.block",
    "streams.keys",
    "streams.memory",
    "streams.holding",
    "messages.links",
    "messages.taken",
    "messages.routes",
    "streams.bucket",
)
SEEDS, FEW = 60, 6
POISONED = 16
RULES = [
    getattr(test_holding, name)
    for name in sorted(vars(test_holding))
    if name.startswith("test_") and "of" in getattr(test_holding, name).__annotations__
]
"""Each a test of one rule, of a module."""
READERS = [
    getattr(test_readers, name)
    for name in vars(test_readers)
    if name.startswith("test_") and "of" in getattr(test_readers, name).__annotations__
]
"""The same, each of a stream with readers."""
DEAR = [
    rule
    for rule in RULES
    if any(word in rule.__name__ for word in ("bounded", "claim", "fingerprints", "invented"))
]
"""Those that take many messages: all others are tried before them."""
TOLD = (
    test_a_clock_that_is_set_back_does_not_prolong_patience,
    test_a_forged_number_of_another_source_is_a_conflict_with_the_first_that_came,
    test_a_heartbeat_is_counted_and_is_not_a_message,
    test_messages_are_known_by_their_process,
    test_what_follows_a_diverted_message_is_held_and_the_report_says_so,
)


def mutant(module: str, line: str, becomes: str, rule: str) -> Any:
    place = module if "." in module else f"streams.{module}"
    return pytest.param(Change(place, line, becomes), id=rule)


MUTANTS = [
    mutant(
        "thresholds", "number = row_number[row] - 1 if own", "number = 0 if own", "the previous of its source"
    ),
    mutant(
        "thresholds",
        "if number <= prefix[stream]:\n                found",
        "if number <= prefix[stream] + 1:\n                found",
        "what is not delivered is waited for",
    ),
    mutant(
        "thresholds",
        "if found[at] == ABSENT and on_island",
        "if False and on_island",
        "an island is delivered",
    ),
    mutant(
        "release",
        "if other >= 0 and status[other] == HELD:\n            watch",
        "if False:\n            watch",
        "a message that is here is waited for",
    ),
    mutant(
        "release",
        "        if other == ABSENT:\n            return WAITS",
        "        if False:\n            return WAITS",
        "one that is not here is waited for",
    ),
    mutant("release", "        status[row] = DELIVERED\n", "        pass\n", "what leaves is delivered"),
    mutant(
        "release", "            status[row] = FLAGGED", "            pass", "who misses a cause is flagged"
    ),
    mutant("release", "        if claimed[row]:", "        if False:", "a named one is late"),
    mutant(
        "release",
        "drags = drags or overdue[row] or",
        "drags = overdue[row] or",
        "those before it of its own source go along",
    ),
    mutant(
        "release",
        "rows.stream[row + 1] != rows.stream[row]:\n                drags = False",
        "False:\n                drags = False",
        "only those of its own source go along",
    ),
    mutant(
        "release",
        "            if before != NONE:\n                other = forced[before]",
        "            pass",
        "the last one before a missing one is a cause",
    ),
    mutant(
        "release",
        "        if other >= 0 and other != row and forced[other] == other and status[other] == HELD:",
        "        if False:",
        "forced ones leave in causal order",
    ),
    mutant("release", "            return BEHIND", "            return FREE", "what moves is waited for"),
    mutant(
        "release",
        "                claimed[head[other]] = True",
        "                pass",
        "a held one that is named is late in the same step",
    ),
    mutant(
        "release",
        "            if stuck == count:\n                return ends",
        "            return ends",
        "a circle has to begin somewhere",
    ),
    mutant(
        "thresholds",
        "        if at != ABSENT:\n            late[at] = True",
        "        pass",
        "a claim is remembered",
    ),
    mutant(
        "thresholds",
        "delivered.begin, delivered.low, delivered.high, stream, rows.number[row] + 1",
        "delivered.begin, delivered.low, delivered.high, stream, rows.number[row]",
        "the one before an island is late",
    ),
    mutant(
        "thresholds",
        "                    found[at] = LOST",
        "                    pass",
        "what is lost is not waited for",
    ),
    mutant("delivered", "last = delivered.begin[stream + 1] - 1 - most", "last = -1", "islands are bounded"),
    mutant(
        "delivered",
        "keep = (delivered.since >= before) & (above <= most)",
        "keep = above <= most",
        "the diverted are forgotten",
    ),
    mutant(
        "release",
        "        if overdue[row] and status[row] == HELD:",
        "        if status[row] == HELD:",
        "only who is overdue is diverted",
    ),
    mutant(
        "release",
        "status[other] in (HELD, DIVERTED)",
        "status[other] in (DIVERTED,)",
        "a held cause is missing",
    ),
    mutant(
        "delivered",
        "prefix[stream] = max(prefix[stream], next_high)",
        "pass",
        "what is delivered is remembered",
    ),
    mutant(
        "delivered",
        "            elif ends > begin[stream] and next_low <= high[ends - 1] + 1:",
        "            elif False:",
        "islands come together",
    ),
    mutant("holding", "index[i] = next_index[receiver[i]]", "index[i] = i", "an index goes on"),
    mutant(
        "holding",
        "old |= is_delivered(self._gone(), new.stream, new.number)",
        "pass",
        "what was diverted is known",
    ),
    mutant(
        "holding",
        "old = is_delivered(self._delivered(), new.stream, new.number)",
        "old = np.zeros(len(new.stream), np.bool_)",
        "what was delivered is known",
    ),
    mutant("holding", "old |= self._is_held(new.stream, new.number)", "pass", "what is held is known"),
    mutant(
        "holding", "return order[~again], duplicate", "return order, duplicate", "of several one is taken"
    ),
    mutant(
        "holding", "other = seen & (marked != mark[at])", "other = seen & False", "a conflict is no duplicate"
    ),
    mutant(
        "holding",
        "same = mark[order] == mark[order[first]]",
        "same = np.ones(len(order), np.bool_)",
        "a conflict within a batch is no duplicate",
    ),
    mutant(
        "holding", "new.number > self.top[new.stream] + AHEAD", "new.number < 0", "too far ahead is refused"
    ),
    mutant(
        "holding",
        "np.maximum.at(self.top, accepted.stream, accepted.number)",
        "pass",
        "the largest number goes up",
    ),
    mutant(
        "holding",
        "keep &= since >= forget_before\n        order",
        "pass\n        order",
        "claims are forgotten",
    ),
    mutant("holding", "- first < MOST_CLAIMS", "- first < 10**9", "claims are bounded"),
    mutant(
        "holding",
        "lexsort((-np.arange(len(by)), by))",
        "lexsort((np.arange(len(by)), by))",
        "new claims are kept",
    ),
    mutant(
        "memory",
        "mine = np.flatnonzero(self.stream_name == self.lost_name[at])",
        "mine = np.flatnonzero(self.stream_name == self.lost_name[at])[:1]",
        "what is lost is lost for every receiver",
    ),
    mutant(
        "holding",
        "self.touched[held.stream[found.order]] = now",
        "self.touched[held.stream[left[counts]]] = now",
        "a diverted id is remembered",
    ),
    mutant(
        "holding",
        "            known[at[seen]] = True\n",
        "",
        "a known one in a closed hole is a duplicate",
    ),
    mutant("keys", "if messages.group is None:", "if True:", "groups number for themselves"),
    mutant("keys", "if messages.cause_group is None:", "if True:", "causes are of their own groups"),
    mutant(
        "block",
        "np.concatenate([self.number[mine], self.number[parts] - 1])",
        "np.concatenate([self.number[mine], 0 * self.number[parts]])",
        "a message waits for the previous one in each of its groups",
    ),
    mutant(
        "block",
        "np.concatenate([self.number[mine], self.number[parts] - 1])",
        "np.concatenate([0 * self.number[mine], self.number[parts] - 1])",
        "a message is delivered in all of its groups at once",
    ),
    mutant(
        "block",
        "range(begin[head[row]], begin[head[row] + 1])",
        "range(begin[row], begin[row + 1])",
        "what names itself in another of its groups is refused",
    ),
    mutant(
        "release",
        "                claimed[head[other]] = True",
        "                claimed[other] = True",
        "what is named in any of its groups is late in the same step",
    ),
    mutant(
        "release",
        "drags = drags or overdue[row] or forced[head[row]] != NONE",
        "drags = drags or overdue[row]",
        "a message leaves with what stands before it in each of its groups",
    ),
    mutant(
        "release",
        "forced[row], forced[head[row]] = row, head[row]",
        "forced[row] = row",
        "what stands before it in any of its groups goes along",
    ),
    mutant(
        "release",
        "if unmet[at] and head[row] == row:",
        "if unmet[at]:",
        "what is missing is named once",
    ),
    mutant(
        "holding",
        "late = of_messages(mark_late(rows, self._delivered(), self._claims()), head)",
        "late = mark_late(rows, self._delivered(), self._claims())",
        "what was named in any of its groups is late",
    ),
    mutant(
        "holding",
        "fresh, duplicate, conflict = _as_one(fresh, duplicate, conflict, head)",
        "pass",
        "one that is new in one group and known in another is in conflict",
    ),
    mutant(
        "holding",
        "left = found.order[held.part[found.order] == HEAD]",
        "left = found.order",
        "a message leaves once, whatever its groups",
    ),
    mutant(
        "holding",
        "int((duplicate & (new.part == HEAD)).sum())",
        "int(duplicate.sum())",
        "a duplicate counts once, whatever its groups",
    ),
    mutant(
        "holding",
        "far = ~selfish & of_messages(new.number > self.top[new.stream] + AHEAD, head)",
        "far = ~selfish & (new.number > self.top[new.stream] + AHEAD)",
        "a message that is too far in one of its groups is refused whole",
    ),
    mutant(
        "memory",
        "return int((self.part == HEAD).sum())",
        "return len(self.part)",
        "a message is held once, whatever its groups",
    ),
    mutant(
        "messages.links",
        "    return Causes(\n        begins(_kept(causes.begin, keep)),",
        "    keep[:] = True\n    return Causes(\n        begins(_kept(causes.begin, keep)),",
        "what is in other groups is not waited for",
    ),
    mutant(
        "messages.links",
        "    if numbers.group is None or not settings.routed:",
        "    if True:",
        "nor the previous one there",
    ),
    mutant(
        "messages.links",
        "differ = _differ(read_groups(column), (found.begin, found.name)) & grouped & ~found.bad & there",
        "differ = np.zeros(count, np.bool_)",
        "groups and numbers agree",
    ),
    mutant(
        "messages.links",
        "odd[lone] = found.number[found.begin[lone]] != sequence[lone]",
        "pass",
        "sequence and number agree",
    ),
    mutant(
        "messages.links",
        "alone = groups_of(table, settings).filter(pa.array(~grouped))",
        "alone = _same(ALL, count).filter(pa.array(~grouped))",
        "a domain is a group",
    ),
    mutant(
        "messages.routes",
        "            pairs = np.unique(pairs)",
        "            pass",
        "a reader of several groups gets a message once",
    ),
    mutant(
        "messages.routes",
        "aside = np.flatnonzero(odd)",
        "aside = np.flatnonzero(odd & False)",
        "what has no groups is diverted",
    ),
    mutant(
        "messages.routes",
        "unread = ~read & ~odd",
        "unread = read & ~read",
        "messages without a reader are counted",
    ),
    mutant(
        "messages.routes",
        "len(rows) + unread - count, unread, unread_by)",
        "len(rows) - count, unread, unread_by)",
        "copies are counted",
    ),
    mutant(
        "marks",
        "range(len(self.sizes) - 1, -1, -1)",
        "range(len(self.sizes) - 1, len(self.sizes) - 2, -1)",
        "older fingerprints are known",
    ),
    mutant(
        "marks",
        "stream, number, mark = _merged(*(np.concatenate(each) for each in both))",
        "stream, number, mark = (np.concatenate(each) for each in both)",
        "segments that become one stay sorted",
    ),
    mutant(
        "marks",
        "        keep &= number > np.repeat(least, sizes)\n",
        "",
        "old fingerprints are dropped",
    ),
    mutant(
        "marks",
        "keep = stream >= 0\n",
        "keep = stream >= -1\n",
        "fingerprints of forgotten streams are dropped",
    ),
    mutant("holding", "        self._tidy_receivers()\n", "", "receivers that got nothing are forgotten"),
    mutant("bucket", "now = self.holding.not_before(now)", "pass", "time does not go back"),
    mutant(
        "bucket",
        "ended = max([ended, *self.holding.clock.tolist()])",
        "pass",
        "the end of the input is after all that came",
    ),
    mutant("messages.taken", "bad &= ~beats", "beats &= ~bad", "a heartbeat is not refused"),
    mutant("bucket", "self._counts[HEARTBEATS] += found.heartbeats", "pass", "heartbeats are counted"),
    mutant("bucket", "self._counts[DIVERTED] += len(problems)", "pass", "refused rows are counted"),
    mutant("bucket", "self._counts[CONFLICTS] += len(conflicts)", "pass", "conflicts are counted"),
    mutant("bucket", "self._counts[DUPLICATES] += outcome.duplicates", "pass", "duplicates are counted"),
    mutant("messages.taken", "problems[row] = faults[row].as_py()", "pass", "a row with a fault is refused"),
    mutant("bucket", 'blocked += ", which was diverted"', "pass", "a diverted cause is named as such"),
    mutant(
        "messages.taken",
        "process = processes_of(table, settings)",
        "process = in_one_piece(table.column(settings.source)).cast(pa.large_string())",
        "messages are known by their process",
    ),
    mutant(
        "messages.links",
        "for name in (*names, settings.source):",
        "for name in (*names, settings.causes):",
        "and else by the source",
    ),
    mutant(
        "messages.links",
        "for name in (*names, settings.source):",
        "for name in (settings.source,):",
        "or by another column",
    ),
    mutant(
        "messages.links",
        "found = pc.coalesce(found, text_column(table.column(name)))",
        "found = pc.coalesce(text_column(table.column(name)), found)",
        "the first column counts",
    ),
    mutant(
        "bucket",
        "self._process = processes_of(table, settings)",
        "self._process = table.column(settings.source)",
        "what is missing is a process's",
    ),
    mutant(
        "messages.taken",
        "sourceless = is_empty(in_one_piece(table.column(settings.source)))",
        "sourceless = nameless & False",
        "who has no source is refused",
    ),
    mutant(
        "messages.taken",
        "refuse(name_themselves(numbers, causes, process), SELFISH)",
        "pass",
        "what names itself is refused for all readers",
    ),
    mutant(
        "messages.links",
        "causes.number[own] >= numbers.number[at]",
        "causes.number[own] > numbers.number[at]",
        "to name itself is to name its own number",
    ),
    mutant("messages.links", "(keys[at] == wanted) & ", "", "in one of its own groups"),
    mutant(
        "messages.links",
        "own[own] = alike.to_numpy(zero_copy_only=False)",
        "pass",
        "what others number is not the message itself",
    ),
    mutant("messages.taken", "    if odd:\n", "    if False:\n", "another version is refused"),
    mutant("messages.taken", '("1", "2", "None")]', '("2", "None")]', "version 1 is read"),
    mutant(
        "bucket",
        "        table = table.append_column(lacking, pa.nulls(table.num_rows, pa.string()))\n",
        "        pass\n",
        "what an earlier release read has fewer columns",
    ),
    mutant(
        "messages.taken",
        "named = bad & ~(nameless | sourceless | unnamed | numberless)",
        "named = bad & (nameless | sourceless | unnamed | numberless)",
        "only a readable number is noted",
    ),
    mutant(
        "holding",
        "overdue = (held.arrival <= overdue_since)",
        "overdue = (held.arrival < overdue_since)",
        "patience ends when it ends",
    ),
    mutant(
        "memory",
        "moved[self.stream], moved[self.cause_stream]\n\n    def _add_receivers",
        "self.stream, self.cause_stream\n\n    def _add_receivers",
        "streams keep their messages",
    ),
    mutant("memory", "keep[self.cause_stream] = True", "pass", "a stream that is waited for stays"),
]


def survives(made: dict[str, Any]) -> bool:
    """What finds most mutants soonest comes first."""
    module = made["streams.holding"]
    for told in TOLD:
        told(made)
    compare_all(range(FEW), module)
    for rule in RULES:
        if rule not in DEAR:
            rule(module)
    for check_readers in READERS:
        check_readers(made)
    for rule in DEAR:
        rule(module)
    for seed in range(POISONED):
        check(seed, ("wait", "flag", "divert")[seed % 7 % 3], made)
    compare_all(range(FEW, SEEDS), module)
    for seed in range(FEW, SEEDS):
        check_waiting(seed, of=made)
    return True


def compare_all(seeds: range, module: Any) -> None:
    for seed in seeds:
        for policy in ("wait", "flag", "divert"):
            compare(policy, seed, module)
            compare_groups(policy, seed, module)
        compare_circles(seed, module)


def test_unchanged_nothing_is_found() -> None:
    with modules(None, MODULES) as made:
        assert survives(made)


@pytest.mark.parametrize("change", MUTANTS)
def test_a_broken_rule_is_found(change: Change) -> None:
    with modules(change, MODULES) as made:
        try:
            survives(made)
        except (AssertionError, IndexError, KeyError, ValueError, AttributeError, TypeError):
            return
    pytest.fail("survived")
