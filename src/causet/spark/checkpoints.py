"""The folder in which a query keeps what it needs to go on: Spark's checkpoint, and what it was asked.

    DIR/causet.json    version, command, and the settings that cannot change
    DIR/spark          Spark's own: offsets, commits, state
    DIR/ends           moments at which the input was said to have ended

A checkpoint of another version, command or setting is refused with what to do; Spark itself refuses other
versions of its own. What is held can be read from it, whether the query runs or not.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

from causet.formats.files import reason, unwritable
from causet.model import BadInput

VERSION = 1


class Checkpoint:
    """A folder of the user's, or one for this run only."""

    def __init__(self, folder: Path | None) -> None:
        self.passing = folder is None
        self._lock = ExitStack()
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="causet-"))

    def __enter__(self) -> Checkpoint:
        return self

    def _keep_to_ourselves(self) -> None:
        """BadInput if somebody else runs with this checkpoint; who is killed lets go of it."""
        file = self._lock.enter_context((self.folder / "lock").open("a"))
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"somebody else runs with the checkpoint {self.folder}; wait until that has ended, or name "
                "another one"
            ) from None

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

    def opened(self, command: str, fixed: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was settled when the query began, or None if this is the first run. BadInput if it was asked
        something else then."""
        found = read_checkpoint(self.folder)
        try:
            if found is None:
                self.ends.mkdir(parents=True, exist_ok=True)
            self._keep_to_ourselves()
        except OSError as error:
            raise unwritable(self.folder, error) from None
        if found is None:
            if any(self.spark.glob("*")):
                raise BadInput(f"{self.folder} is the checkpoint of something else; name another folder")
            return None
        if found["command"] != command:
            raise BadInput(f"{self.folder} is the checkpoint of causet {found['command']}, not of {command}")
        for name, value in fixed.items():
            if found["fixed"].get(name) != value:
                raise BadInput(
                    f"{self.folder} was made with {name} = {found['fixed'].get(name)!r}, and now it is "
                    f"{value!r}; go on as before, or begin with a new checkpoint and a new sink"
                )
        return found

    def check_files(self) -> None:
        """BadInput if a batch was begun and not ended, and a file of it is gone: run again without it, the
        batch would replace its rows by fewer."""
        offsets = {int(each.name): each for each in (self.spark / "offsets").glob("[0-9]*")}
        begun = max(offsets, default=-1)
        if begun < 0 or (self.spark / "commits" / str(begun)).exists():
            return
        first, last = (_log_offset(offsets.get(batch)) for batch in (begun - 1, begun))
        for log in sorted((self.spark / "sources" / "0").glob("[0-9]*")):
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                path = Path(unquote(urlsplit(entry["path"]).path))
                if first < entry["batchId"] <= last and not path.exists():
                    raise BadInput(
                        f"{path} is gone, and was being read when the last run ended; put it back until it "
                        "is read"
                    )

    def settle(self, command: str, fixed: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        """Write down what this query is."""
        found = {**kept, "version": VERSION, "command": command, "fixed": dict(fixed)}
        beside = self.folder / "causet.json.new"
        try:
            with beside.open("w") as stream:
                json.dump(found, stream)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(self.folder / "causet.json")
        except OSError as error:
            raise unwritable(self.folder, error) from None

    def end(self, moment: int) -> None:
        """Say that whoever came until this moment has no patience left."""
        self.ends.mkdir(parents=True, exist_ok=True)
        beside = self.ends / f".{moment}"
        beside.write_text(f'{{"ended": {moment}}}\n')
        beside.replace(self.ends / f"{moment}.json")


def _log_offset(file: Path | None) -> int:
    """Up to where the files of the first source belong to a batch, in Spark's log of them; -1 for none."""
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None else []
    return int(json.loads(lines[2])["logOffset"]) if len(lines) > 2 and lines[2] != "-" else -1


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
        raise BadInput(f"{folder}/causet.json is not a checkpoint's")
    if found["version"] != VERSION:
        raise BadInput(
            f"{folder} is a checkpoint of version {found['version']}, and this release reads version "
            f"{VERSION}: let the release that wrote it run until nothing is held, then begin with a new "
            "checkpoint and a new sink"
        )
    return found
