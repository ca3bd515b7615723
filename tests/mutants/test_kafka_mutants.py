"""Each rule of the Kafka source and sink, dropped or weakened: the test of that rule must fail.

Against a real broker, as in `test_kafka_faults.py`, whose tests these are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import tests.streams.test_kafka_faults as faults
from causet.errors import CausetError
from tests.helpers.mutating import Change, modules, place_of, source_of

MODULES = ("kafka.client", "kafka.gaps", "kafka.rows", "kafka.source", "kafka.transaction", "kafka.sink")
FOUND = (
    AssertionError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    CausetError,
    pytest.fail.Exception,
)
MUTANTS: list[Any] = []


def mutant(homes: tuple[str, ...], test: Any, line: str, becomes: str, rule: str) -> None:
    """A change of a line, which stands in one of these modules."""
    (home,) = [module for module in homes if line in source_of(module)]
    MUTANTS.append(pytest.param(test, Change(home, line, becomes), id=rule.replace(" ", "-")))


source = partial(mutant, ("kafka.gaps", "kafka.rows", "kafka.source"))
sink = partial(mutant, ("kafka.transaction", "kafka.sink"))
shared = partial(mutant, ("kafka.client",))

# ---------------------------------------------------------------- source

RETENTION = faults.test_messages_that_retention_removed_before_they_were_read_are_an_error
SKIPPED = faults.test_a_gap_is_skipped_if_that_is_asked_for_and_it_is_noted_once
AGAIN = faults.test_a_batch_that_was_planned_before_a_restart_is_looked_at_again
UNDER_A_TASK = faults.test_a_topic_that_is_made_anew_under_a_task_is_noticed
NO_IDS = faults.test_offsets_without_the_id_of_the_topic_are_read_too
NOT_TEXT = faults.test_what_is_not_text_becomes_a_fault_of_that_message


def made_anew(broker: str, tmp_path: Path) -> None:
    faults.test_a_topic_that_was_made_anew_is_another_one(broker, tmp_path, 40)


source(RETENTION, "    if wanted < low:", "    if False:", "offsets that are gone are a gap")
source(
    RETENTION, "if gap is not None and self.gaps == STOP:", "if False:", "a gap ends the query unless skipped"
)
source(made_anew, "known is not None and known != now.ids.get(topic)", "False", "a topic is known by its id")
source(
    made_anew, "        return {**ends, **now.ids}", "        return ends", "ids are a part of the offsets"
)
source(
    SKIPPED,
    "            if gap is not None:\n                self._report(gap)",
    "            pass",
    "a gap that is skipped is noted",
)
source(SKIPPED, "if file.exists() and line in file", "if False and line in file", "a gap is noted once")
source(
    AGAIN,
    "            if gap is not None:\n                self._report(gap)",
    "            pass",
    "a batch that was planned is looked at again",
)
source(
    AGAIN,
    "(id is not None and id != now.ids.get(topic)) or stop > high",
    "stop > high",
    "a batch is of the topic that it was planned for",
)
source(NO_IDS, " or stop > high:", ":", "an end that is not there is a gap")
source(NO_IDS, "elif gap is None and wanted > stop:", "elif False:", "an end before the start is a gap")
source(NO_IDS, "or wanted > high:", "or False:", "a start that is not there is a gap")
source(
    UNDER_A_TASK,
    "if partition.id is not None and (now is None or now.id != partition.id):",
    "if False:",
    "a task reads the topic that was meant",
)
source(NOT_TEXT, "if value is not None and not _is_utf8(value):", "if False:", "attributes are UTF-8")
source(NOT_TEXT, "    if not _is_utf8(value):", "    if False:", "values in structured mode are UTF-8")
source(NOT_TEXT, """if name != "data" and""", "if", "data may be anything")
shared(
    faults.test_retention_that_overtakes_a_task_is_noticed,
    '"auto.offset.reset": "error"',
    '"auto.offset.reset": "earliest"',
    "a consumer never goes on elsewhere",
)

# ---------------------------------------------------------------- sink

RUN_AGAIN = faults.test_a_task_that_is_run_again_after_its_commit_writes_nothing
FORGOTTEN = faults.test_when_kafka_has_forgotten_the_offset_the_records_say_it
CONSTANT = faults.test_the_last_batch_is_found_in_constant_time
HEADERS = faults.test_headers_of_an_earlier_delivery_are_replaced
OWNER = faults.test_a_topic_has_one_owner
TWO = faults.test_of_two_queries_that_claim_at_the_same_moment_one_is_refused
RELEASE = faults.test_a_topic_of_an_earlier_release_goes_on
LARGE = faults.test_a_message_just_within_the_limit_is_taken
ENTER = '            with producing(retry, f"causet-{self.query}", OPEN_AT_MOST, self.largest) as producer:\n'
ASK = "                if self.batch <= progress.last_batch():"
NO_OWNER = faults.test_a_query_that_withdraws_leaves_no_owner_unless_it_has_written


def sink_made_anew(broker: str) -> None:
    faults.test_a_sink_that_was_made_anew_is_refused(broker, "")


sink(RUN_AGAIN, ASK, "                if False:", "a batch that is there is not written again")
sink(RUN_AGAIN, ASK, ASK.replace("<=", "<"), "the last batch that is there counts")
sink(
    RUN_AGAIN,
    "                    for _ in batches:  # the state must move on all the same\n",
    "                    for _ in ():\n",
    "the state moves on all the same",
)
sink(
    faults.test_the_last_batch_is_an_offset_and_no_record_is_read_for_it,
    "        self.note(producer, batch)\n",
    "",
    "a batch is noted as an offset",
)
sink(
    faults.test_the_question_is_asked_after_earlier_producers_are_fenced,
    ENTER + ASK,
    "            asked = progress.last_batch()\n" + ENTER + "                if self.batch <= asked:",
    "fence and then ask",
)
sink(
    faults.test_a_zombie_that_goes_on_is_refused,
    'with producing(retry, f"causet-{self.query}", OPEN',
    'with producing(retry, f"causet-{id(retry)}", OPEN',
    "a query has one transactional id",
)
sink(
    faults.test_a_task_that_fails_before_its_commit_leaves_nothing_open,
    "            producer.abort_transaction(kafka_client.PER_CALL)",
    "            pass",
    "what is not committed is taken back",
)
sink(
    FORGOTTEN,
    "        producer.produce(name, record, self.query.encode(), partition=0)\n",
    "",
    "a batch leaves a record",
)
sink(
    FORGOTTEN,
    "bounds([(name, 0)], not hidden)",
    "bounds([(name, 0)])",
    "what is open at the end of the records is waited for",
)
sink(
    faults.test_an_open_transaction_of_another_producer_hides_no_batch,
    "            progress.note(producer, last)",
    "            pass",
    "an offset is there from the start",
)
sink(CONSTANT, "if message.key() == self.query.encode()", "if True", "batches of another query do not count")
sink(CONSTANT, "if found.offset > 0:", "if False:", "the offset is asked first")
sink(CONSTANT, "begin = max(low, end - window)", "begin = low", "records are read from the end")
sink(HEADERS, "if not name.startswith(OURS)", "", "our headers are replaced")
sink(HEADERS, 'if row["status"] == DIVERTED else', "if False else", "what is diverted has its topic")
sink(OWNER, 'if owner.get("query") != self.query:', "if False:", "another owner is refused")
sink(
    TWO,
    "        if not self._write_owner(retry, taken):\n            taken(self._owner(retry))",
    "        self._write_owner(retry, taken)",
    "the slower one is refused",
)
sink(TWO, 'f"causet-owner-{self.topic}"', 'f"causet-owner-{self.query}"', "who claims fences the others")
sink(
    sink_made_anew,
    "if id is not None and ids.get(name) != id:",
    "if False:",
    "the owner knows the ids of its topics",
)
sink(RELEASE, "if fresh and begun and self._has_batches(cluster):", "if False:", "batches without an owner")
sink(RELEASE, "if not fresh and not (begun and", "if not fresh and (begun and", "a query that wrote goes on")
sink(
    NO_OWNER,
    '            return b"" if mine and',
    "            return None if mine and",
    "an owner withdraws",
)
sink(
    NO_OWNER,
    "mine and Progress(self.topic, self.query, retry).last_batch() < 0",
    "mine",
    "an owner of messages stays",
)
sink(
    faults.test_many_small_messages_fit_a_small_limit,
    "min(max(largest or LARGEST, 1000), LARGEST)",
    "LARGEST",
    "the producer keeps to the limit of the topic",
)
sink(LARGE, "key and key[:LONGEST_TEXT], None, told", "key and key[:LONGEST_TEXT], value, told", "no value")
sink(
    faults.test_causes_that_do_not_fit_are_left_out_and_counted,
    '"missing": _shortened(missing, room)',
    '"missing": missing',
    "causes are left out if they do not fit",
)
sink(
    faults.test_names_without_end_do_not_end_the_query,
    "key and key[:LONGEST_TEXT]",
    "key",
    "a long key is shortened",
)

shared(
    faults.test_no_end_is_before_its_beginning_though_retention_overtakes_the_question,
    "max(first[place], last[place])",
    "last[place]",
    "no end is before its beginning",
)

# ---------------------------------------------------------------- patience

PAUSES = faults.test_calls_are_repeated_with_growing_pauses
shared(PAUSES, "pause = min(2 * pause, LONGEST_PAUSE)", "pass", "pauses grow")
shared(PAUSES, "min(2 * pause, LONGEST_PAUSE)", "2 * pause", "pauses are bounded")
shared(
    PAUSES, "                if not passes(error):", "                if False:", "some errors do not pass"
)
shared(PAUSES, "bool(found.retriable()) or found.name() in _PASSING", "False", "some errors pass")
shared(
    PAUSES,
    "        return isinstance(error, FutureTimeout | Passing)\n    found = error.args[0]\n"
    "    if found.fatal() or found.txn_requires_abort():\n        return False\n",
    "        return isinstance(error, FutureTimeout | Passing)\n    found = error.args[0]\n"
    "    if found.fatal() or found.txn_requires_abort():\n        return True\n",
    "a fatal error is not waited for",
)
shared(
    FORGOTTEN,
    '"isolation.level": "read_committed"',
    '"isolation.level": "read_uncommitted"',
    "only what is committed is read",
)


def run(
    test: Callable[..., None], made: dict[str, Any], broker: str, folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """The test, with the modules that were made in the place of the real ones."""
    for name, module in made.items():
        short = name.replace(".", "_")
        for imported in [each for each in vars(faults) if hasattr(module, each)]:
            if getattr(vars(faults)[imported], "__module__", "") == f"causet.{place_of(name)}":
                patch.setattr(faults, imported, getattr(module, imported))
        if hasattr(faults, short):
            patch.setattr(faults, short, module)
    patch.setattr(faults, "TRIED", 4)
    with pytest.MonkeyPatch.context() as own:  # which the test may undo
        given = {"broker": broker, "tmp_path": folder, "monkeypatch": own}
        test(**{name: given[name] for name in signature(test).parameters})


@pytest.mark.soak
@pytest.mark.parametrize(("test", "change"), MUTANTS)
def test_a_mutant_is_caught(
    test: Any, change: Change, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with modules(change, MODULES) as made, pytest.raises(FOUND):
        run(test, made, broker, tmp_path, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("test", list(dict.fromkeys(each.values[0] for each in MUTANTS)))
def test_without_a_change_the_tests_pass(
    test: Any, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with modules(None, MODULES) as made:
        run(test, made, broker, tmp_path, monkeypatch)
