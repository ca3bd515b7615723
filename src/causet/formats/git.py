"""The commits of a Git repository as a trace.

A commit is an event; its parents are its causes, and nothing else is: no order is added. So that there are
processes, the commits are cut into first-parent lines, each commit in exactly one. The line of HEAD comes
first and follows first parents to the root; then, from the newest on, each commit that is not the first
parent of another begins a line that follows first parents until it meets a commit already taken. Lines are
numbered by their oldest commits, so that numbers stay as they are when the repository grows at its heads.

Ids are whole hashes, times are the committer's, in seconds, and texts are the subjects.

Rule: Git is called without a shell and with fixed arguments; it runs nothing that the repository's own
settings name, does not prompt, and fetches nothing. What it prints is separated by NUL.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, overload

from causet.errors import BadInput, quote, reason
from causet.files import Place
from causet.formats.execution import Execution, assemble, other_processes
from causet.model import Event

SUBJECT = 1_000
"""Characters of a subject that are kept."""

_SAFELY = (
    "--no-pager",
    "--no-replace-objects",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never"),
)
_LOG = (
    *("log", "-z", "--no-color", "--no-decorate", "--no-notes", "--no-patch", "--no-mailmap"),
    *("--no-show-signature", "--encoding=UTF-8", "--format=%H%x00%P%x00%ct%x00%s"),
)
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Commit(NamedTuple):
    """One commit: its hash, its parents' hashes, the committer's time in seconds, and its subject."""

    hash: str
    parents: tuple[str, ...]
    time: int
    subject: str


class Position(NamedTuple):
    """The position of a commit: its line, from 1, and its number there, the oldest being 1."""

    line: int
    seq: int


def read_git(path: str | Path, *, all_refs: bool = False) -> Execution:
    """The history of HEAD, or of every ref, as one execution.

    Bad input: no Git, no repository, one without a commit. Log faults: parents that are not there, as in a
    shallow clone.
    """
    path = Path(path)
    named = _git(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", "--", may_fail=True)
    head = "" if named is None else named.decode().split("\n")[0]
    if not head and not all_refs:
        raise BadInput(
            f"{path}: HEAD names no commit; the repository has none yet, or only on other branches"
        )
    of = [*(["--all"] if all_refs else []), *([head] if head else [])]
    commits = _commits(path, _git(path, *_LOG, *of, "--"))
    if not commits:
        raise BadInput(f"{path}: the repository has no commits yet")
    commits = _with_cut_parents(path, commits)
    return assemble("", _events(path, commits, first_parent_lines(commits, head)))


def first_parent_lines(commits: Sequence[Commit], head: str = "") -> dict[str, Position]:
    """Each commit's position in its first-parent line; `head`, if there is one, begins the first line."""
    by_hash = {commit.hash: commit for commit in commits}
    continued = {commit.parents[0] for commit in commits if commit.parents}
    starts = [commit for commit in commits if commit.hash not in continued and commit.hash != head]
    starts.sort(key=lambda commit: (-commit.time, commit.hash))
    if head in by_hash:
        starts.insert(0, by_hash[head])
    lines: list[list[str]] = []
    taken: set[str] = set()
    # This takes every commit: going up from first parent to child one ends at a start, and its line comes
    # down again, or stops at one that did.
    for start in starts:
        line: list[str] = []
        at: Commit | None = start
        while at is not None and at.hash not in taken:
            taken.add(at.hash)
            line.append(at.hash)
            at = by_hash.get(at.parents[0]) if at.parents else None
        lines.append(line[::-1])
    age = {commit.hash: number for number, commit in enumerate(sorted(commits, key=_age), start=1)}
    lines.sort(key=lambda line: age[line[0]])
    return {
        name: Position(number, seq)
        for number, line in enumerate(lines, start=1)
        for seq, name in enumerate(line, start=1)
    }


def _age(commit: Commit) -> tuple[int, str]:
    return commit.time, commit.hash


def _events(
    path: Path, commits: Sequence[Commit], positions: Mapping[str, Position]
) -> Iterable[tuple[Place, Event]]:
    where = {name: (f"line-{line:05}", seq) for name, (line, seq) in positions.items()}
    for number, commit in enumerate(commits, start=1):
        process, seq = where[commit.hash]
        yield (
            Place(str(path), number, "commit"),
            Event(
                process,
                seq,
                id=commit.hash,
                parents=other_processes(process, seq, commit.parents, where),
                time=commit.time,
                text=commit.subject,
            ),
        )


# ---------------------------------------------------------------- calling Git


@overload
def _git(path: Path, *arguments: str, given: bytes = b"") -> bytes: ...
@overload
def _git(path: Path, *arguments: str, may_fail: Literal[True]) -> bytes | None: ...
def _git(path: Path, *arguments: str, given: bytes = b"", may_fail: bool = False) -> bytes | None:
    """What Git prints; None if it fails and may."""
    # The caller's own GIT_DIR and the like would point elsewhere than at `path`.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", *_SAFELY, *arguments],
            cwd=path,
            env=environment,
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        if error.filename == "git":
            raise BadInput(
                "Git is not installed, or not on the PATH; it is needed to read a repository"
            ) from None
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {reason(error)}") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: ")
    if "not a git repository" in said:
        raise BadInput(f"{path} is not a Git repository")
    if may_fail:
        return None
    raise BadInput(f"{path}: Git says: {said or f'exit code {done.returncode}'}")


def _commits(path: Path, printed: bytes) -> list[Commit]:
    fields = printed.decode(errors="replace").split("\0")
    commits = []
    for at in range(0, len(fields) - 1, 4):
        name, parents, time, subject = fields[at : at + 4] if at + 4 <= len(fields) else ("", "", "", "")
        hashes = (name.strip(), *parents.split())
        if not all(_HASH.fullmatch(each) for each in hashes) or not re.fullmatch(r"-?[0-9]{1,18}", time):
            raise BadInput(
                f"{path}: commit {at // 4 + 1} of Git's log cannot be read: {quote(fields[at : at + 3])}"
            )
        if len(subject) > SUBJECT:
            subject = subject[: SUBJECT - 1] + "…"
        commits.append(Commit(hashes[0], hashes[1:], int(time), subject))
    return commits


def _with_cut_parents(path: Path, commits: list[Commit]) -> list[Commit]:
    """The commits with the parents that a shallow clone hides: the commits themselves still name them."""
    if _git(path, "rev-parse", "--is-shallow-repository").strip() != b"true":
        return commits
    rootless = [commit.hash for commit in commits if not commit.parents]
    raw = _git(path, "cat-file", "--batch", given="".join(f"{name}\n" for name in rootless).encode())
    hidden: dict[str, tuple[str, ...]] = {}
    at = 0
    for name in rootless:
        end = raw.find(b"\n", at)
        head = raw[at:end].split()
        if end < 0 or len(head) != 3 or not head[2].isdigit():
            raise BadInput(f"{path}: Git cannot show the commit {name}")
        body = raw[end + 1 : end + 1 + int(head[2])]
        at = end + 2 + int(head[2])
        lines = body.partition(b"\n\n")[0].decode(errors="replace").split("\n")
        found = (line.removeprefix("parent ") for line in lines if line.startswith("parent "))
        hidden[name] = tuple(each for each in found if _HASH.fullmatch(each))
    return [commit._replace(parents=hidden.get(commit.hash, commit.parents)) for commit in commits]
