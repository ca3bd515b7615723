"""How far is each reader? The answer of `causet explain --checkpoint --cut`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from causet.cli.shared.printing import print_json, warn
from causet.cli.shared.spark import session
from causet.errors import BadInput

FINE = 0


def write_cut(folder: Path, master: str | None, conf: Mapping[str, str]) -> int:
    """Print what was delivered to the readers of a query."""
    from causet.spark.streams.checkpoint import Checkpoint, read_checkpoint

    about = read_checkpoint(folder)
    if about is None or about["command"] != "deliver":
        raise BadInput(f"{folder} is not a checkpoint of causet deliver")
    for name in ("by", "parent"):
        if about["fixed"][name] is not None:
            raise BadInput(f"{folder} was made with --{name}: --cut is for readers of groups")
    with session(master, conf, "reading", brief=True) as spark:
        from causet.spark.streams.beginnings.export import exported

        found, held = exported(spark, Checkpoint(folder), about["settings"], about["fixed"]["buckets"])
    print_json(found)
    if held:
        warn(
            f"{held:,} messages are held, and are not in the cut: another checkpoint has them only if its "
            "source still does"
        )
    return FINE
