"""Every example in the help of every command works, on small data made here."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
from pyspark.sql import SparkSession

from causet import Stamper
from causet.cli import COMMANDS, cli
from tests.helpers.places import ROOT
from tests.helpers.samples import repository, shop
from tests.helpers.snippets import run_command

ELSEWHERE = ("causet demo", "kafka://")
"""Run by tests of their own, and with the README."""
IN_README = {line.partition("#")[0].strip() for line in (ROOT / "README.md").read_text().splitlines()}
"""Run there, with the same words."""
SLOW = {
    "causet compare",
    "causet explore --protocol histories --links cycle -n 4",
    "causet deliver messages.jsonl delivered --missing wait --readers readers.yaml",  # before `--begin now`
}
FINDINGS = (
    "verify --one-order",
    "--as-printed M3",
)
"""What is there to show a finding exits with 1."""
LOG = 'a {"a": 1}\nasks\nb {"a": 1, "b": 1}\nanswers\n'
SPANS = [
    {"traceId": "t", "spanId": "1", "startTimeUnixNano": 5, "endTimeUnixNano": 9, "name": "order"},
    {"traceId": "t", "spanId": "2", "parentSpanId": "1", "startTimeUnixNano": 6, "endTimeUnixNano": 8},
]


def examples() -> list[str]:
    above = click.Context(cli, info_name="causet")
    found: list[str] = []
    for name in COMMANDS:
        command = cli.get_command(above, name)
        assert command is not None and command.help
        found += re.findall(r"^ +(causet .*)$", command.help.partition("Example")[2], re.MULTILINE)
    return found


def test_every_command_has_one() -> None:
    assert {line.split()[1] for line in examples()} == set(COMMANDS)


def test_every_option_has_help_that_is_a_full_phrase_with_its_default() -> None:
    above = click.Context(cli, info_name="causet")
    for name in COMMANDS:
        command = cli.get_command(above, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                where, text = f"causet {name} {option.opts[0]}", option.help or ""
                assert len(text.split()) >= 2 and text.rstrip()[-1] in ".])", f"{where}: {text!r}"
                if not option.is_flag and isinstance(option.default, int | float | str):
                    assert option.show_default or "default" in text, where


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for every name that the examples use."""
    made = tmp_path_factory.mktemp("sample")
    repository(made)
    (made / "schedules").symlink_to(ROOT / "schedules")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for name in ("trace", "before", "after"):
            seed = len(name)
            line = f"causet simulate --protocol vector -n 4 -m 40 --seed {seed} -o {name}.jsonl"
            assert run_command(line)[0] == 0
        line = "causet simulate --protocol histories -n 4 -m 40 -o run.jsonl --packets packets"
        assert run_command(line)[0] == 0
        for name in ("packets.jsonl", "system.yaml"):
            shutil.move(made / "packets" / name, made)
        for output in ("trace.parquet", "messages.jsonl --to cloudevents"):
            assert run_command(f"causet convert trace.jsonl -o {output}")[0] == 0
    for name in ("chord.log", "run.log"):
        (made / name).write_text(LOG)
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    spans = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": SPANS}]}]}
    (made / "spans.json").write_text(json.dumps(spans))
    (made / "readers.yaml").write_text("first: [p1, p2]\nsecond: [p2, p3, p4]\n")
    (made / "more.yaml").write_text("first: [p1, p2, p3]\nsecond: [p2, p3, p4]\nthird: [p1]\n")
    (made / "orders.csv").write_text("order,reply_to,shop\n1,,a\n2,1,b\n")
    write(made / "inbox/1.jsonl", shop(30))
    parents: list[dict[str, Any]] = [
        {"id": "answer", "causationid": "question"},
        {"id": "question", "causationid": None},
    ]
    write(made / "events/1.jsonl", parents)
    return made


@pytest.fixture
def folder(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Path:
    """A copy of the sample for one example, in which it runs."""
    copy = shutil.copytree(sample, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("COLUMNS", "100")
    return copy


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def hold_back(folder: Path) -> None:
    """A checkpoint in which anna's seventh message waits for her sixth."""
    anna = Stamper("anna", "chat")
    sent = [anna.stamp({"number": number}) for number in range(1, 8)]
    write(folder / "chat/1.jsonl", [each for each in sent if each["sequence"] != sent[5]["sequence"]])
    assert run_command("causet deliver chat chatted --missing wait --checkpoint state --buckets 2")[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=line.removeprefix("causet "), marks=(pytest.mark.soak,) if line in SLOW else ())
        for line in examples()
        if not any(text in line for text in ELSEWHERE) and line not in IN_README
    ],
)
def test_the_example_works(line: str, folder: Path) -> None:
    if "--checkpoint state" in line and "explain" in line:
        hold_back(folder)
    if "--begin now" in line:  # readers join others
        before = line.replace("more.yaml --begin now", "readers.yaml")
        assert run_command(before)[0] == 0 and before != line
    wanted = 1 if any(text in line for text in FINDINGS) else 0
    code, said = run_command(line.partition(" > ")[0])
    assert code == wanted, said
    made = re.findall(r"(?:-o|--report|delivered|merged) (\S+\.\w+)", line)
    assert all((folder / name).stat().st_size for name in made)
