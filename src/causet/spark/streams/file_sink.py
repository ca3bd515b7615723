"""File sink of a stream: every batch exactly once, across crashes and for any reader.

Spark's own file sink is exact only for readers that know its log: others see the files of a batch that was
run again as duplicates. Here the files of a batch have names that follow from its number, and a batch that
is run again, which gives the same rows, replaces them one by one. So any tool that lists the folder finds
every row exactly once:

    SINK/batch-0000000012-00000.parquet     rows of batch 12, those of a receiver in one file, by index
    SINK-diverted/…                         messages that left by the side
    SINK/_causet.json                       whose sink it is: one query, with one checkpoint
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.errors import BadInput, printable, quote, reason
from causet.files import unwritable
from causet.spark.streams.pack import Blobs
from causet.spark.streams.parquet import PLACES, ToFiles, arrow_schema, is_plain
from causet.spark.write.folder import FORMS, fit_for, parts_in, write_files
from causet.status import DIVERTED

ASIDE = "__causet_aside"
MARK = "_causet.json"
"""The file that names the query whose sink a folder is. Readers ignore names with an underscore."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""Error numbers of file systems without hard links."""


def diverted_beside(sink: Path) -> Path:
    """Where what does not go into the sink goes."""
    named = sink if sink.name else sink.resolve()
    return named.with_name(f"{named.name}-diverted")


class FileSink:
    """A folder of Parquet or JSON Lines files, and one beside it for what is diverted."""

    def __init__(self, folder: Path, form: str, aside: bool = True) -> None:
        if form not in FORMS:
            raise BadInput(f"unknown format {quote(form)}; rows are written as {' or '.join(FORMS)}")
        self.folder = folder
        self.form = form
        self.aside = aside
        self.most_bytes: int | None = None
        self._claimed: list[Path] = []

    @property
    def folders(self) -> tuple[Path, ...]:
        """The sink, and the folder beside it."""
        return (self.folder, diverted_beside(self.folder)) if self.aside else (self.folder,)

    def check(self, name: str, fresh: bool) -> None:
        """BadInput if these folders cannot be the sink of the query of that name. Changes nothing."""
        if not self.folder.resolve().name:
            raise BadInput(f"{self.folder}: give the name of a folder to write")
        for folder in self.folders:
            if folder.exists() and not folder.is_dir():
                raise BadInput(f"{folder} is not a folder; give the name of a folder to write")
            owner = owner_of(folder)
            if owner is not None:
                _check_owner(folder, owner, name)
            elif not fresh:
                raise BadInput(
                    f"{folder} has lost {MARK}, the mark of its query: it was removed or recreated, and rows "
                    "may be missing; put it back as it was, or begin with a new checkpoint and a new sink"
                )
            elif _rows_in(folder):
                raise BadInput(
                    f"{folder} is not empty, and this is a new query; name another folder, or go on with the "
                    "checkpoint of the query that wrote it"
                )

    def claim(self, name: str, about: Mapping[str, str]) -> None:
        """Make the folders and mark them as those of the query of that name; BadInput if another query was
        faster."""
        for folder in self.folders:
            try:
                folder.mkdir(exist_ok=True)
                made = _mark(folder, {**about, "query": name})
            except OSError as error:
                raise unwritable(folder, error) from None
            if made:
                self._claimed.append(folder)
            else:
                _check_owner(folder, owner_of(folder) or {}, name)

    def withdraw(self) -> None:
        """Remove the marks that this run made, and the folders if nothing is in them: the query was refused
        after all."""
        for folder in self._claimed:
            with suppress(OSError):
                (folder / MARK).unlink()
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()

    def write(self, rows: DataFrame | Blobs, batch: int) -> None:
        """Write the rows of a batch, in the place of any that an earlier run of the same batch left."""
        beside = self.folder.resolve() / f".batch-{batch:010}.part"
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(rows, Blobs) and self.form == "parquet" and is_plain(rows.schema):
            kept, aside = self._by_workers(rows, beside)
        else:
            kept, aside = self._by_spark(rows.rows() if isinstance(rows, Blobs) else rows, beside)
        try:
            self._put(kept, self.folder, batch)
            if self.aside:
                self._put(aside, diverted_beside(self.folder), batch)
        except OSError as error:
            raise unwritable(self.folder, error) from None
        shutil.rmtree(beside, ignore_errors=True)

    def _by_workers(self, blobs: Blobs, beside: Path) -> tuple[list[Path], list[Path]]:
        """Write without Spark's rows. Files, in order, of what goes into the sink and of what goes aside."""
        schema = arrow_schema(blobs.schema, blobs.frame.sparkSession)
        task = ToFiles(blobs.unpack, schema, beside, self.aside)
        written = sorted(row[0] for row in blobs.frame.mapInArrow(task, "file string").collect())
        kept, aside = ([beside / name for name in written if name.startswith(f"{each}/")] for each in PLACES)
        return kept, aside

    def _by_spark(self, rows: DataFrame, beside: Path) -> tuple[list[Path], list[Path]]:
        if self.aside:
            rows = rows.withColumn(ASIDE, F.coalesce(F.col("status") == DIVERTED, F.lit(False)))
        writer = fit_for(rows, self.form).write.mode("error")
        if self.aside:
            # With a writer for each, open at the same time, Spark does not sort, and rows keep their order.
            writer = writer.partitionBy(ASIDE)
        write_files(writer, f"file:{beside}", self.form)
        if not self.aside:
            return parts_in(beside), []
        return parts_in(beside / f"{ASIDE}=false"), parts_in(beside / f"{ASIDE}=true")

    def _put(self, written: list[Path], folder: Path, batch: int) -> None:
        names = set()
        for number, file in enumerate(written):
            names.add(f"batch-{batch:010}-{number:05}.{self.form}")
            file.replace(folder / f"batch-{batch:010}-{number:05}.{self.form}")
        for stale in folder.glob(f"batch-{batch:010}-*"):
            if stale.name not in names:
                stale.unlink()

    def clean(self) -> None:
        """Remove what a run that was killed left half written."""
        for folder in self.folder.glob(".batch-*.part"):
            shutil.rmtree(folder, ignore_errors=True)


def owner_of(folder: Path) -> dict[str, str] | None:
    """What the mark in a folder says about the query whose sink it is; None if there is no mark."""
    try:
        found = json.loads((folder / MARK).read_bytes())
        if isinstance(found, dict) and isinstance(found.get("query"), str):
            return {str(key): str(value) for key, value in found.items()}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        pass
    except OSError as error:
        raise BadInput(f"{folder / MARK} cannot be read: {reason(error)}") from None
    raise BadInput(f"{folder / MARK} is damaged: it does not say whose rows these are; name another folder")


def _check_owner(folder: Path, owner: Mapping[str, str], name: str) -> None:
    if owner.get("query") == name:
        return
    command, source, checkpoint = (owner.get(key, "?") for key in ("command", "source", "checkpoint"))
    whose = f"{folder} is the sink of another query, causet {command} of {printable(source)}"
    if Path(checkpoint).is_dir():
        raise BadInput(f"{whose}: go on with --checkpoint {checkpoint}, or name another folder")
    raise BadInput(
        f"{whose}, whose checkpoint {checkpoint} is gone: without it, rows would be duplicated; put it "
        f"back, name another folder, or remove both {folder.name.removesuffix('-diverted')} and "
        f"{folder.name.removesuffix('-diverted')}-diverted to start over"
    )


def _mark(folder: Path, about: Mapping[str, str]) -> bool:
    """Write the mark of an owner, as a whole; False if there is one already."""
    file, beside = folder / MARK, folder / f".{MARK}.{about['query']}"
    text = json.dumps(dict(about)).encode()
    try:
        with beside.open("wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(beside, file)  # unlike a rename, fails if it is there
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        try:
            with file.open("xb") as stream:
                stream.write(text)
        except FileExistsError:
            return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _rows_in(folder: Path) -> bool:
    """Whether readers of a folder would find anything in it."""
    try:
        return folder.is_dir() and any(not each.name.startswith((".", "_")) for each in folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder} cannot be read: {reason(error)}") from None
