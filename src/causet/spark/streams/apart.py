"""What a query reads and what it writes lie apart."""

from __future__ import annotations

from pathlib import Path

from causet.errors import BadInput, printable
from causet.spark.streams.file_sink import diverted_beside
from causet.spark.streams.kafka.client import Address
from causet.spark.streams.kafka.sink import BESIDE


def check_apart(source: str, sink: str, checkpoint: Path, cuts: str | None) -> None:
    """BadInput if something that a query writes would be read as messages: by this query, or by one that
    reads its sink. A checkpoint may lie in a sink, where it has a hidden name; a place of `cuts` may not."""
    read, written_to = Address.parse(source), Address.parse(sink)
    if read is not None and written_to is not None and read.servers == written_to.servers:
        topics = {topic + suffix for topic in written_to.topics for suffix in ("", *BESIDE)}
        for topic in topics.intersection(read.topics):
            raise BadInput(
                f"topic {printable(topic)} is the source, and would be written to; name another sink"
            )
    place = None if cuts is None else Path(cuts).resolve()
    sinks = []
    if written_to is None:
        folder = Path(sink).resolve()
        if not folder.name:
            raise BadInput(f"{sink}: give the name of a folder to write")
        sinks = [folder, diverted_beside(folder)]
    for folder in sinks:
        if place is not None and place.is_relative_to(folder):
            raise BadInput(
                f"the cuts in {place} would lie among the messages in {folder}; name another folder"
            )
    if read is not None or not Path(source).is_dir():
        return
    for folder in (checkpoint.resolve(), *sinks, *([] if place is None else [place])):
        if folder.is_relative_to(Path(source).resolve()):
            raise BadInput(f"{folder} lies in {source}, and would be read as input; name a folder elsewhere")
