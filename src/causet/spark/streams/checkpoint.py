"""The checkpoint of a query: a folder with what it needs to continue, Spark's checkpoint included.

    DIR/causet.json          version, command, the settings that cannot change, and those of the last batch
    DIR/name                 the name of the query, by which its sink knows it
    DIR/spark                Spark's own: offsets, commits, state
    DIR/ends                 times at which the input ended, or may have ended
    DIR/verdicts/BATCH.json  files that a batch leaves out because they cannot be read
    DIR/beginnings           where readers begin

A checkpoint of another version, command or setting is refused with what to do; Spark itself refuses other
versions of its own. What is held can be read from it, whether the query runs or not.

Settings that may change (patience, ε, …) belong to the batch that was planned with them: a batch that was
planned and not committed is run again with the settings and verdicts that are written down here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from causet.errors import BadInput, quote, reason
from causet.files import unwritable
from causet.spark.streams.beginnings.kept import Beginnings

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

VERSION = 2
MOST_LOGS = 1000
"""Logs of files that a batch may have, before all of them are read."""
IN_SINK = "_checkpoint"
"""The name of a default checkpoint. Readers of the sink ignore names that begin with an underscore."""


def default_checkpoint(command: str, source: str, sink: str) -> Path:
    """Where a query keeps its checkpoint if it was given none: in its sink, if that is a folder, so that both
    are removed together; else in the user's state folder, under a name that is the same the next time."""
    if not sink.startswith("kafka://"):
        if Path(sink).is_file():
            raise BadInput(f"{sink} is a file; name a folder to write")
        return Path(sink) / IN_SINK
    place = source if source.startswith("kafka://") else str(Path(source).resolve())
    digest = hashlib.sha256(json.dumps([command, place, sink]).encode()).hexdigest()[:12]
    topic = re.sub(r"[^\w.-]", "_", sink.rpartition("/")[2])[:80]
    home = os.environ.get("XDG_STATE_HOME", "")
    state = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return state / "causet" / f"{command}-{topic}-{digest}"


class Checkpoint:
    """A folder of the user's, or one for this run only."""

    def __init__(self, folder: Path | None) -> None:
        self.passing = folder is None
        self._lock = ExitStack()
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="causet-"))
        self.name = ""
        """of the query, once the checkpoint is opened"""
        self._locked = False
        self._named = False
        """by this process, in this run"""
        self._made: list[Path] = []
        """folders that were not there before, innermost first"""

    def __enter__(self) -> Checkpoint:
        return self

    def _keep_to_ourselves(self) -> None:
        """BadInput if another process runs with this checkpoint. A process that is killed lets go of it."""
        path = self.folder / "lock"
        file = self._lock.enter_context(path.open("a"))
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.fstat(file.fileno()).st_ino == path.stat().st_ino
        except (BlockingIOError, FileNotFoundError):
            ours = False
        if not ours:
            raise BadInput(
                f"another process runs with the checkpoint {self.folder}; wait until it has ended, or name "
                "another checkpoint"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.close()
        if self.passing:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def spark(self) -> Path:
        return self.folder / "spark"

    @property
    def ends(self) -> Path:
        return self.folder / "ends"

    @property
    def beginnings(self) -> Beginnings:
        return Beginnings(self.folder / "beginnings")

    def look(self, command: str, fixed: Mapping[str, Any]) -> tuple[str, bool]:
        """The name of the query, empty if it has none yet, and whether its first run is still to come;
        BadInput if it was asked something else then. Changes nothing."""
        found = read_checkpoint(self.folder)
        if found is not None:
            self._compare(found, command, fixed)
        return self._known_name(), found is None

    def _compare(self, found: Mapping[str, Any], command: str, fixed: Mapping[str, Any]) -> None:
        if found["command"] != command:
            raise BadInput(f"{self.folder} is the checkpoint of causet {found['command']}, not of {command}")
        for name, value in fixed.items():
            if found["fixed"].get(name) != value:
                raise BadInput(
                    f"{self.folder} was made with {name} = {quote(found['fixed'].get(name))}, and now it is "
                    f"{quote(value)}; go on as before, or begin with a new checkpoint and a new sink"
                )

    def _known_name(self) -> str:
        try:
            return (self.folder / "name").read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.folder}/name cannot be read: {error}") from None

    def opened(self, command: str, fixed: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was settled when the query began, or None if this is the first run. BadInput if it was asked
        something else then."""
        read_checkpoint(self.folder)
        try:
            for folder in (self.folder, *self.folder.parents):
                if folder.exists():
                    break
                self._made.append(folder)
            self.ends.mkdir(parents=True, exist_ok=True)
            self._keep_to_ourselves()
            self._locked = True
        except OSError as error:
            raise unwritable(self.folder, error) from None
        found = read_checkpoint(self.folder)
        if found is None and any(self.spark.glob("*")):
            raise BadInput(f"{self.folder} is the checkpoint of something else; name another folder")
        self.name = self._known_name()
        if not self.name:
            if found is not None:
                raise BadInput(
                    f"{self.folder}/name is missing: the checkpoint is damaged; begin with a new checkpoint "
                    "and a new sink"
                )
            self.name = uuid4().hex
            self._write("name", self.name)
            self._named = True
        if found is not None:
            self._compare(found, command, fixed)
        return found

    def withdraw(self) -> None:
        """Remove what `opened` made: the query was refused before it began. What belongs to another process,
        which has the lock, stays."""
        if not self._locked:
            return
        for name in ("name", "lock") if self._named else ():
            with suppress(OSError):
                (self.folder / name).unlink()
        self.beginnings.withdraw()
        for folder in (self.ends, *self._made):
            with suppress(OSError):
                folder.rmdir()

    def settle(
        self,
        command: str,
        fixed: Mapping[str, Any],
        kept: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down what this query is, and the settings of the batches that are planned from now on."""
        about = {"version": VERSION, "command": command, "fixed": dict(fixed)}
        self._write("causet.json", json.dumps({**kept, **about, "settings": dict(settings or {})}))

    def _write(self, name: str, text: str) -> None:
        """Write a file completely or not at all."""
        file = self.folder / name
        beside = file.with_name(f".{file.name}.new")
        try:
            file.parent.mkdir(exist_ok=True)
            with beside.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)
        except OSError as error:
            raise unwritable(self.folder, error) from None

    # ------------------------------------------------------------ batches

    def pending(self) -> int | None:
        """The batch that was planned and not committed, if there is one: Spark runs it again."""
        planned = self.last_planned()
        committed = max(_numbers(self.spark / "commits"), default=-1)
        return planned if planned > committed else None

    def last_planned(self) -> int:
        """The last batch that was planned; -1 before the first."""
        return max(_numbers(self.spark / "offsets"), default=-1)

    def offsets_of(self, batch: int) -> dict[str, Any]:
        """The offsets up to which a planned batch reads a topic; none of a batch that is not known."""
        return _source_offset(self.spark / "offsets" / str(batch))

    def files_of(self, batch: int) -> list[Path]:
        """The files of messages that a planned batch reads, by Spark's log of them."""
        return self.files_between(batch - 1, batch)

    def files_between(self, after: int, batch: int) -> list[Path]:
        """The files that batches up to `batch` read, and those up to `after` did not; -1 for before the
        first."""
        first, last = (_log_offset(self.spark / "offsets" / str(each)) for each in (after, batch))
        found: dict[Path, None] = {}
        home = self.spark / "sources" / "0"
        logs = [
            home / f"{number}{kind}" for number in range(first + 1, last + 1) for kind in ("", ".compact")
        ]
        for log in logs if last - first < MOST_LOGS else sorted(home.glob("[0-9]*")):
            lines = log.read_text(encoding="utf-8").splitlines()[1:] if log.exists() else []
            for line in lines:
                entry = json.loads(line)
                if first < entry["batchId"] <= last:
                    found[Path(unquote(urlsplit(entry["path"]).path))] = None
        return list(found)

    def check_files(self) -> None:
        """BadInput if a batch was planned and not committed, and a file of it is gone: run again without it,
        the batch would replace its rows by fewer. A file that cannot be read anyway may go."""
        batch = self.pending()
        if batch is not None:
            self.check_files_of(batch)

    def check_files_of(self, batch: int) -> None:
        """BadInput if a file of this planned batch is gone. Spark itself leaves out, without an error, what
        went away after it was listed."""
        unreadable = self._judged(batch)[0]
        for path in self.files_of(batch):
            if not path.exists() and str(path) not in unreadable:
                raise BadInput(f"{path} is gone, and belongs to a batch that is not finished; put it back")

    def verdicts(self, batch: int) -> dict[str, str]:
        """The files that a batch leaves out, and why each cannot be read."""
        files, left_out = self._judged(batch)
        return files if left_out else {}

    def judge(self, batch: int, files: Mapping[str, str], left_out: bool = True) -> None:
        """Write down which files of a batch cannot be read, before the batch is run again without them; or,
        if they are not to be left out, so that they are not asked for once they are taken away."""
        self._write(f"verdicts/{batch}.json", json.dumps({"left_out": left_out, "files": dict(files)}))

    def _judged(self, batch: int) -> tuple[dict[str, str], bool]:
        file = self.folder / "verdicts" / f"{batch}.json"
        try:
            found = json.loads(file.read_bytes())
            return dict(found["files"]), bool(found["left_out"])
        except FileNotFoundError:
            return {}, False
        except (OSError, ValueError, LookupError, TypeError):
            raise BadInput(f"{file} is damaged; begin with a new checkpoint and a new sink") from None

    def prune(self) -> None:
        """Remove what no batch needs any longer: of the ends of input all but the last, which counts for all;
        and the verdicts of batches that are committed."""
        if self.pending() is not None:
            return
        self.beginnings.prune(self.last_planned())
        committed = max(_numbers(self.spark / "commits"), default=-1)
        ends = sorted(_numbers(self.ends))
        with suppress(OSError):
            for ended in ends[:-1]:
                (self.ends / f"{ended}.json").unlink()
                kept_end(self.ends, ended).unlink(missing_ok=True)
            for batch in _numbers(self.folder / "verdicts"):
                if batch <= committed:
                    (self.folder / "verdicts" / f"{batch}.json").unlink()

    def end(self, now: int, promised: bool = False) -> None:
        """Record that everything that came until this time, in ms, is in a batch that was planned; or, if it
        is promised, that this may turn out to be so (`keep_end`)."""
        self._signal(now, {"ended": now, "promised": promised})

    def keep_end(self, now: int) -> None:
        """A promised time counts."""
        kept_end(self.ends, now).touch()

    def wake(self, now: int) -> None:
        """Let a batch run in every bucket, though nothing came: settings have changed what may leave."""
        self._signal(now, {"ended": None})

    def forget_end(self, now: int) -> None:
        """Remove what `end` recorded, once the batch that read it is committed."""
        with suppress(OSError):
            (self.ends / f"{now}.json").unlink()
            kept_end(self.ends, now).unlink(missing_ok=True)

    def _signal(self, now: int, about: Mapping[str, object]) -> None:
        self.ends.mkdir(parents=True, exist_ok=True)
        beside = self.ends / f".{now}"
        beside.write_text(f"{json.dumps(about)}\n")
        beside.replace(self.ends / f"{now}.json")


ENDS = "ended long, promised boolean"
"""What stands in the files of ends."""


def kept_end(ends: Path, now: int) -> Path:
    """Beside a promised time: the file that says that it counts. Spark does not read it."""
    return ends / f"_{now}"


def _numbers(folder: Path) -> list[int]:
    """The numbers after which files are named in a folder."""
    found = (re.fullmatch(r"(\d+)(?:\.json)?", each.name) for each in folder.glob("[0-9]*"))
    return [int(each[1]) for each in found if each]


def _log_offset(file: Path) -> int:
    """Up to where the files of the first source belong to a batch, in Spark's log of them; -1 for none."""
    return int(_source_offset(file).get("logOffset", -1))


def _source_offset(file: Path) -> dict[str, Any]:
    """The offset of the first source, the messages, in Spark's log of a batch."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found: dict[str, Any] = json.loads(lines[2]) if len(lines) > 2 and lines[2] != "-" else {}
    return found


def read_checkpoint(folder: Path) -> dict[str, Any] | None:
    """What is written down there; None if nothing is. BadInput if it is not ours, or of another version."""
    try:
        found = json.loads((folder / "causet.json").read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"{folder} cannot be read: {reason(error)}") from None
    except ValueError:
        raise BadInput(
            f"{folder}/causet.json is damaged; begin with a new checkpoint and a new sink"
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("version"), int):
        raise BadInput(f"{folder}/causet.json is not the file of a checkpoint")
    if found["version"] != VERSION:
        raise BadInput(
            f"{folder} is a checkpoint of version {found['version']}, and this release reads version "
            f"{VERSION}: let the release that wrote it run until nothing is held, then begin with a new "
            "checkpoint and a new sink"
        )
    return found
