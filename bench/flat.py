"""Whether a stream that is followed for long stays as small as it is: 2,000 messages a second, for an hour.

Every minute: the files of the checkpoint, the memory of the JVM and of the Python processes (resident), and
the JVM's heap after a garbage collection, where the JDK's `jcmd` is there to ask for one. The ratios are of
the mean over the last quarter to that over the second quarter: the first one is for warming up.

Not part of `make bench`: it takes an hour. `python -m bench flat`; with --quick, five minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep

from bench.result import Result, Spoilt

PER_FILE, FILES_PER_SECOND = 500, 4
RECEIVERS, SOURCES = 16, 8
DISORDER = 40
"""Messages come in groups of so many, each backwards: some are held in every batch."""
COMMAND = [sys.executable, "-c", "from causet.cli import main; main()"]
STARTING = 300
"""Seconds for the first batch."""
MOST = 1.05
"""A flat line, give or take."""


@dataclass(frozen=True)
class Sample:
    """How a query stands at a moment."""

    seconds: float
    files: int
    jvm: int
    """MB"""
    python: int
    """MB"""
    heap: int | None
    """MB, after a garbage collection"""
    folders: dict[str, int]
    """files by the folder of the checkpoint"""

    def line(self) -> str:
        heap = "" if self.heap is None else f", heap {self.heap:,} MB"
        folders = ", ".join(f"{name} {count:,}" for name, count in sorted(self.folders.items()))
        return (
            f"{self.seconds / 60:5.1f} min: {self.files:,} files ({folders}), JVM {self.jvm:,} MB{heap}, "
            f"Python {self.python:,} MB"
        )


def results(quick: bool) -> Iterator[Result]:
    return measure(5 if quick else 60, 15 if quick else 60)


def measure(minutes: float, every: float = 60) -> Iterator[Result]:
    with TemporaryDirectory() as folder:
        samples = watch(Path(folder), minutes, every)
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    if not quarter:
        raise Spoilt("it ended before there was anything to compare")
    for what, name in (("checkpoint files", "files"), ("JVM memory", "jvm"), ("Python memory", "python")):
        first, last = (sum(getattr(each, name) for each in some) / quarter for some in (before, after))
        told = f"{first:,.0f} → {last:,.0f}"
        yield Result("flat", what, last / first, told, {"first": first, "last": last}, MOST)


def watch(folder: Path, minutes: float, every: float) -> list[Sample]:
    """Feed a query for so long, and look at it every so many seconds."""
    inbox, state = folder / "inbox", folder / "state"
    inbox.mkdir()
    feeder = Feeder(inbox)
    feeder.write()
    command = [*COMMAND, "deliver", str(inbox), str(folder / "out"), "--missing", "wait", "--by", "receiver"]
    command += ["--checkpoint", str(state), "--follow", "--buckets", "16", "--json"]
    samples: list[Sample] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as query:
        over = Event()
        _await_first_batch(query, state)
        thread = Thread(target=feeder.feed, args=(over,))
        thread.start()
        begin = monotonic()
        try:
            while monotonic() - begin < minutes * 60 and query.poll() is None:
                over.wait(every)
                samples.append(sample(query.pid, state, monotonic() - begin))
                print(samples[-1].line(), file=sys.stderr, flush=True)
        finally:
            over.set()
            thread.join()
            ended = query.poll()
            query.send_signal(signal.SIGTERM)  # SIGINT is ignored in the background of a script
            printed, said = query.communicate(timeout=120)
    if ended is not None:
        raise Spoilt(f"the query ended by itself: {said.strip()}")
    books = json.loads(printed)["books"]
    rate = books["delivered"] / samples[-1].seconds
    print(f"{feeder.sent:,} messages sent, {rate:,.0f} delivered per second; {books}", file=sys.stderr)
    return samples


def _await_first_batch(query: subprocess.Popen[str], state: Path) -> None:
    end = monotonic() + STARTING
    while not any((state / "spark" / "commits").glob("0")):
        if query.poll() is not None or monotonic() > end:
            query.kill()
            raise Spoilt("the query has not come to its first batch")
        sleep(0.5)


class Feeder:
    """Writes files of messages, some of them before their causes."""

    def __init__(self, inbox: Path) -> None:
        self._inbox = inbox
        self._numbers: Counter[tuple[int, int]] = Counter()
        self._files = 0
        self.sent = 0

    def feed(self, over: Event) -> None:
        due = monotonic()
        while not over.is_set():
            self.write()
            due += 1 / FILES_PER_SECOND
            over.wait(max(due - monotonic(), 0))

    def write(self) -> None:
        lines = [self._message() for _ in range(PER_FILE)]
        groups = (lines[at : at + DISORDER] for at in range(0, PER_FILE, DISORDER))
        self._files += 1
        beside = self._inbox / f".{self._files:08}"
        beside.write_text("".join(line for group in groups for line in reversed(group)))
        beside.rename(self._inbox / f"{self._files:08}.jsonl")

    def _message(self) -> str:
        receiver, source = self.sent % RECEIVERS, self.sent // RECEIVERS % SOURCES
        self.sent += 1
        self._numbers[receiver, source] += 1
        other = self._numbers[receiver, (source - 1) % SOURCES]
        causes = {f"s{(source - 1) % SOURCES}": other} if other else {}
        about = {"receiver": f"r{receiver}", "source": f"s{source}", "causaldeps": json.dumps(causes)}
        return json.dumps({**about, "sequence": str(self._numbers[receiver, source])}) + "\n"


def sample(pid: int, state: Path, seconds: float) -> Sample:
    folders: Counter[str] = Counter()
    for home, _, names in os.walk(state):
        parts = Path(home).relative_to(state).parts
        folders["/".join(parts[:2]) or "."] += len(names)
    java = 0
    processes = [pid, *_below(pid)]
    for each in processes:
        with suppress(OSError):
            java = each if Path(f"/proc/{each}/comm").read_text().strip() == "java" else java
    heap = heap_of(java) if java else None  # first, so that memory is what is left after it
    memory: Counter[str] = Counter()
    for each in processes:
        try:
            name = Path(f"/proc/{each}/comm").read_text().strip()
            pages = int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except OSError:
            continue
        memory["java" if name == "java" else "python"] += pages * os.sysconf("SC_PAGE_SIZE") // 2**20
    return Sample(seconds, folders.total(), memory["java"], memory["python"], heap, dict(folders))


def heap_of(pid: int) -> int | None:
    """MB of a JVM's heap that are used after a garbage collection."""
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return None
    subprocess.run([jcmd, str(pid), "GC.run"], capture_output=True, timeout=60, check=False)
    told = subprocess.run([jcmd, str(pid), "GC.heap_info"], capture_output=True, text=True, check=False)
    found = re.search(r"used (\d+)K", told.stdout)
    return int(found[1]) // 1024 if found else None


def _below(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found
