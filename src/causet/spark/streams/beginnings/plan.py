"""What changes if others read: found by names alone, before Spark is started."""

from __future__ import annotations

from dataclasses import dataclass

from causet.errors import BadInput, quote
from causet.readers import Readers

FRONT, NOW = "front", "now"


@dataclass(frozen=True)
class Changes:
    """How the readers of a query differ from those that its state knows."""

    added: dict[str, tuple[str, ...]]
    """reader → groups that it did not read before"""
    dropped: dict[str, tuple[str, ...]]
    """reader, which stays → groups that it reads no longer"""
    removed: tuple[str, ...]

    @property
    def changed(self) -> tuple[str, ...]:
        """Readers whose messages have to be looked at again, or that begin."""
        return tuple(dict.fromkeys([*self.added, *self.dropped]))


def changes(before: Readers, since: Readers) -> Changes:
    """How readers differ. Those that are not listed read whatever comes, and never change."""
    old, new = (dict(each.listed) for each in (before, since))
    added = {reader: _without(groups, old.get(reader, ())) for reader, groups in new.items()}
    dropped = {reader: _without(old[reader], groups) for reader, groups in new.items() if reader in old}
    return Changes(
        {reader: groups for reader, groups in added.items() if groups},
        {reader: groups for reader, groups in dropped.items() if groups},
        _without(tuple(old), tuple(new)),
    )


def _without(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = set(others)
    return tuple(name for name in names if name not in known)


def check_added(before: Readers, since: Readers, begin: str | None) -> Changes:
    """How readers differ, where a query goes on; BadInput if those that are new cannot begin."""
    found = changes(before, since)
    if not found.added:
        return found
    reader, groups = next(iter(found.added.items()))
    what = f"reader {quote(reader)}"
    if any(reader == each for each, _ in before.listed):
        what = f"the group {quote(groups[0])} of {what}"
    if begin is None:
        raise BadInput(
            f"{what} is new to this checkpoint: with --begin now (begin='now') it begins after what the "
            "others delivered; for what came before, a query of its own, with another checkpoint and another "
            "sink, reads the source from the front"
        )
    if begin == FRONT:
        raise BadInput(
            f"{what} cannot begin at the front of a source that this checkpoint has read already: give it a "
            "query of its own, with another checkpoint and another sink, which reads the source from the "
            "front; or begin here with --begin now"
        )
    if begin != NOW:
        raise BadInput(
            f"{what} is new to this checkpoint, and --begin {begin} is for a new one: here use --begin now"
        )
    for reader, groups in found.added.items():
        for group in groups:
            if not before.of_group(group):
                raise BadInput(
                    f"reader {quote(reader)} cannot begin in the group {quote(group)} now: no reader of this "
                    "checkpoint has read it, so it is not known where now is; give it a query of its own, "
                    "with another checkpoint and another sink"
                )
    return found


def check_first(begin: str | None) -> None:
    """BadInput if a first run cannot begin there."""
    if begin == NOW:
        raise BadInput(
            "--begin now is for readers that join others at a checkpoint, and this one is new: it begins at "
            "the front, or with --begin FILE at a cut that `causet explain --checkpoint DIR --cut` wrote"
        )
