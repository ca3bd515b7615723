"""A Git repository as a trace: first-parent lines, parents as causes, nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.formats.execution import UNKNOWN_PARENT, Execution
from causet.formats.git import Commit, first_parent_lines, read_git
from causet.formats.trace import read_trace
from tests.helpers.places import TRACES

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A repository whose commits have times and names of our choosing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.time = 1_700_000_000

    def git(self, *arguments: str) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "c",
            "GIT_COMMITTER_EMAIL": "c@example.org",
        }
        if hasattr(self, "time"):
            self.time += 1
            environment |= dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{self.time} +0100")
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, subject: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def lines_of(execution: Execution) -> dict[str, list[str]]:
    """Per process the subjects in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in execution.events:
        found.setdefault(event.process, []).append((event.seq, str(event.text)))
    return {process: [text for _, text in sorted(texts)] for process, texts in sorted(found.items())}


def fork(repository: Repository) -> dict[str, str]:
    """main: 1 - 2 ----- m - 3, with a branch x - y from 1, merged in m."""
    hashes = {"1": repository.commit("1")}
    repository.git("checkout", "--quiet", "-b", "side")
    hashes |= {"x": repository.commit("x"), "y": repository.commit("y")}
    repository.git("checkout", "--quiet", "main")
    hashes["2"] = repository.commit("2")
    repository.git("merge", "--quiet", "--no-ff", "-m", "m", "side")
    hashes["m"] = repository.git("rev-parse", "HEAD")
    hashes["3"] = repository.commit("3")
    return hashes


@needs_git
def test_lines_follow_first_parents_and_parents_are_those_of_other_lines(repository: Repository) -> None:
    hashes = fork(repository)
    execution = read_git(repository.path)
    assert lines_of(execution) == {"line-00001": ["1", "2", "m", "3"], "line-00002": ["x", "y"]}
    parents = {str(event.text): event.parents for event in execution.events}
    assert parents == {"1": (), "2": (), "m": (hashes["y"],), "3": (), "x": (hashes["1"],), "y": ()}
    assert {str(event.text): event.id for event in execution.events} == hashes
    times = {str(event.text): event.time for event in execution.events}
    assert all(isinstance(time, int) for time in times.values())
    assert times["x"] == 1_700_000_004
    assert execution.faults == ()


@needs_git
def test_head_is_read_and_all_refs_if_asked(repository: Repository) -> None:
    fork(repository)
    repository.git("checkout", "--quiet", "-b", "later", "main~1")
    repository.commit("elsewhere")
    repository.git("checkout", "--quiet", "main")
    assert len(read_git(repository.path).events) == 6
    everything = read_git(repository.path, all_refs=True)
    assert lines_of(everything) == {
        "line-00001": ["1", "2", "m", "3"],
        "line-00002": ["x", "y"],
        "line-00003": ["elsewhere"],
    }
    # HEAD begins the first line also where another branch goes on from it.
    repository.git("checkout", "--quiet", "-b", "early", "main~1")
    early = lines_of(read_git(repository.path, all_refs=True))
    assert early["line-00001"] == ["1", "2", "m"]
    assert sorted(early.values()) == [["1", "2", "m"], ["3"], ["elsewhere"], ["x", "y"]]


@needs_git
def test_a_folder_within_and_a_bare_repository_are_read(repository: Repository, tmp_path: Path) -> None:
    fork(repository)
    (repository.path / "deep").mkdir()
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(bare))
    expected = list(read_git(repository.path).events)
    assert list(read_git(repository.path / "deep").events) == expected
    assert list(read_git(bare).events) == expected


@needs_git
def test_odd_subjects_are_texts(repository: Repository) -> None:
    for subject in ("tab\tand ünïcode \x01", "a" * 3000, "two\nlines in one subject\n\nand a body"):
        repository.commit(subject)
    repository.git(
        "-c", "i18n.commitEncoding=latin1", "commit", "--allow-empty", "--allow-empty-message", "-m", ""
    )
    texts = [event.text for event in read_git(repository.path).events][::-1]
    assert texts == ["tab\tand ünïcode \x01", "a" * 999 + "…", "two lines in one subject", ""]


@needs_git
def test_a_shallow_clone_has_unknown_parents_and_says_so(repository: Repository, tmp_path: Path) -> None:
    hashes = fork(repository)
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "3", f"file://{repository.path}", str(clone))
    execution = read_git(clone)
    assert sorted(str(event.text) for event in execution.events) == ["2", "3", "m", "y"]
    (fault,) = execution.faults
    assert (fault.kind, fault.count) == (UNKNOWN_PARENT, 2)
    named = {parent for event in execution.events for parent in event.parents}
    assert named == {hashes["1"], hashes["x"], hashes["y"]}
    assert fault.places[0].startswith(f"{clone}, commit ")


@needs_git
def test_replaced_parents_and_grafts_are_not_believed(repository: Repository) -> None:
    hashes = fork(repository)
    expected = list(read_git(repository.path).events)
    repository.git("replace", "--graft", hashes["3"])
    (repository.path / ".git" / "info" / "grafts").write_text(f"{hashes['m']}\n")
    assert list(read_git(repository.path).events) == expected


@needs_git
def test_the_settings_of_a_repository_and_the_environment_run_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork(repository)
    expected = list(read_git(repository.path).events)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "diff.external"):
        repository.git("config", setting, str(trap))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "format.pretty", "raw")
    repository.git("config", "log.diffMerges", "on")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    assert list(read_git(repository.path).events) == expected
    assert not (tmp_path / "sprung").exists()


@needs_git
def test_what_is_no_repository_is_refused_in_one_sentence(tmp_path: Path, repository: Repository) -> None:
    (tmp_path / "empty").mkdir()
    for path, said in (
        (tmp_path / "empty", "empty is not a Git repository"),
        (tmp_path / "missing", "missing cannot be read: No such file or directory"),
        (
            repository.path,
            "repository: HEAD names no commit; the repository has none yet, or only on other branches",
        ),
    ):
        with pytest.raises(BadInput) as refused:
            read_git(path)
        assert str(refused.value).endswith(said)
        assert "\n" not in str(refused.value)
    with pytest.raises(BadInput, match="the repository has no commits yet"):
        read_git(repository.path, all_refs=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="cannot be read: Not a directory"):
        read_git(tmp_path / "file")


@needs_git
def test_a_damaged_repository_is_refused_in_one_sentence(repository: Repository) -> None:
    hashes = fork(repository)
    gone = repository.path / ".git" / "objects" / hashes["2"][:2] / hashes["2"][2:]
    gone.chmod(0o644)
    gone.unlink()
    with pytest.raises(BadInput) as refused:
        read_git(repository.path)
    assert "Git says: " in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="Git is not installed, or not on the PATH"):
        read_git(tmp_path)


# ---------------------------------------------------------------- lines


def history(random: Random, size: int) -> list[Commit]:
    """Random commits, newest first; the first of them reaches all."""
    commits: list[Commit] = []
    for number in range(size):
        earlier = [commit.hash for commit in commits]
        parents = random.sample(earlier, k=min(len(earlier), random.choice((0, 1, 1, 1, 2, 3))))
        commits.append(Commit(f"{number:040x}", tuple(parents), random.randrange(9), ""))
    return commits[::-1]


def check_lines(commits: Sequence[Commit], head: str) -> int:
    """Whether the lines are lines: how many there are."""
    positions = first_parent_lines(commits, head)
    by_hash = {commit.hash: commit for commit in commits}
    assert positions.keys() == by_hash.keys()
    assert len(set(positions.values())) == len(positions)
    by_position = {(line, seq): name for name, (line, seq) in positions.items()}
    for name, (line, seq) in positions.items():
        if seq > 1:
            assert by_hash[name].parents[0] == by_position[line, seq - 1]
    return len({line for line, _ in positions.values()})


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_every_commit_is_in_one_line_and_the_order_given_does_not_matter(seed: int, size: int) -> None:
    random = Random(seed)
    commits = history(random, size)
    continued = {commit.parents[0] for commit in commits if commit.parents}
    head = commits[0].hash
    assert check_lines(commits, head) == len([commit for commit in commits if commit.hash not in continued])
    check_lines(commits, random.choice(commits).hash)
    check_lines(commits, "")
    shuffled = random.sample(commits, k=len(commits))
    assert first_parent_lines(shuffled, head) == first_parent_lines(commits, head)
    # HEAD's line follows first parents to the root.
    at, length = commits[0], 1
    by_hash = {commit.hash: commit for commit in commits}
    while at.parents:
        at, length = by_hash[at.parents[0]], length + 1
    assert first_parent_lines(commits, head)[head].seq == length


@pytest.mark.skipif(
    not (TRACES / "events").is_dir(), reason=f"no real traces in {TRACES}; set CAUSET_TRACES to their folder"
)
def test_a_real_history_has_as_many_lines_as_others_found_and_the_same_order() -> None:
    events = read_trace(TRACES / "events" / "git_antidote_lines.jsonl.gz")
    at = {(event.process, event.seq): event.id for event in events}
    commits = [
        Commit(
            event.id,
            (*([at[event.process, event.seq - 1]] if event.seq > 1 else []), *event.parents),
            int(event.time or 0),
            "",
        )
        for event in events
    ]
    positions = first_parent_lines(commits, events[0].id)
    assert check_lines(commits, events[0].id) == 112
    cross = sum(
        positions[parent].line != positions[each.hash].line for each in commits for parent in each.parents
    )
    # 486 there, where lines are cut from the oldest on; seven merges have both parents in one line here.
    assert cross == 479
    assert positions[events[0].id] == (1, 608)
