"""Each rule of the clock that releases, dropped or weakened: the tests of `ticks` find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.mutating import Change, modules
from tests.streams import test_ticks as ticks

RULES = [
    ("promised is not None and self._reading.reached_end(batch)", "promised is not None", "a backlog"),
    ("promised=True", "promised=False", "a promise is not yet a time that counts"),
    (
        "            self._promise(self._now())\n",
        "            self._show(self._now())\n",
        "now is not yet planned",
    ),
    ("        if planned:\n", "        if True:\n", "all that is there is planned"),
    ("< self._per_batch", "<= self._per_batch", "a full batch may have left something"),
    ("now * MS > oldest + self._wait", "True", "a time releases something"),
    ("now * MS > oldest + self._wait", "now * MS >= oldest + self._wait", "the clock exceeds the time"),
    ("bool(held) and", "", "something is held"),
    ("not unread and now >= self._shown + AT_LEAST", "not unread", "not too often"),
    ("if last <= batch - KEPT", "if False", "what was read is removed"),
    ("return rows < self._reader.per_batch", "return True", "a full batch of a topic"),
    ("planned.get(name, 0) >= there[name]", "True", "a topic is read to its end"),
    ("            return False  # a topic", "            pass  # a topic", "a topic that was recreated"),
    (" if form == self._form", "", "files of another form are not read"),
    ("not unread and", "", "one time for each batch"),
]


def check(folder: Path) -> None:
    for number, test in enumerate(
        (
            ticks.test_a_time_counts_when_everything_that_is_there_is_planned,
            ticks.test_a_backlog_does_not_become_late,
            ticks.test_a_promise_that_no_batch_took_up_never_counts,
            ticks.test_nothing_is_written_that_releases_nothing,
            ticks.test_times_that_were_read_are_removed,
            ticks.test_while_a_batch_runs_one_time_is_written_down_and_one_is_promised_as_it_ends,
            ticks.test_topics_are_read_up_to_their_last_offsets,
            ticks.test_only_files_that_the_query_reads_are_waited_for,
        )
    ):
        (folder / str(number)).mkdir()
        test(folder / str(number))
    for seed in range(20):
        (folder / f"seed {seed}").mkdir()
        ticks.test_no_time_counts_before_what_had_come_by_then_is_planned(folder / f"seed {seed}", seed)


def test_unchanged_every_check_passes(tmp_path: Path) -> None:
    check(tmp_path)


@pytest.mark.parametrize(
    "change",
    [pytest.param(Change("streams.ticks", *rule), id=why.replace(" ", "-")) for *rule, why in RULES],
)
def test_a_broken_rule_is_found(change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with modules(change, ["streams.ticks"]) as made:
        for name in ("Ticks", "FileReading", "TopicReading"):
            monkeypatch.setattr(ticks, name, getattr(made["streams.ticks"], name))
        try:
            check(tmp_path)
        except AssertionError:
            return
    pytest.fail("survived")
