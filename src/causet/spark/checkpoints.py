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
from pathlib import Path
from typing import Any

from causet.formats.files import reason, unwritable
from causet.model import BadInput

VERSION = 1


class Checkpoint:
    """A folder of the user's, or one for this run only."""

    def __init__(self, folder: Path | None) -> None:
        self.passing = folder is None
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="causet-"))

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
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
        if found is None:
            try:
                self.ends.mkdir(parents=True, exist_ok=True)
                if any(self.spark.glob("*")):
                    raise BadInput(f"{self.folder} is the checkpoint of something else; name another folder")
            except OSError as error:
                raise unwritable(self.folder, error) from None
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
