"""Schedules, version 1: an exact interleaving that a person can read and write.

A schedule says who sends what, and in which order messages are received, lost or doubled, clocks tick and
null messages go out. It names no protocol: the same file shows what each of them does with it (`replay`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import yaml

from causet.errors import BadInput, quote
from causet.model import Processes, System, is_text, mask, members, only, together
from causet.plain import load_plain, load_yaml
from causet.protocols import OPTION_NAMES
from causet.topology import build_system

MOST_STEPS = 1_000_000
MOST_SEVERAL = 1_000
"""Different lists of groups to which messages go at once."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `kind` says which fields count."""

    kind: str
    message: str = ""
    process: int | None = None
    targets: Processes = 0
    group: int | None = None
    now: int = 0
    seed: int = 0
    merge: bool = True
    """whether what is sent or received here counts as a cause of what this process sends later"""


@dataclass(frozen=True, slots=True)
class Schedule:
    system: System
    steps: tuple[Step, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def read_schedule(path: Path) -> Schedule:
    """The schedule in a YAML or JSON file; BadInput names what is wrong with it, and where."""
    content = load_plain(path)
    try:
        return schedule_of(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse(text: str) -> Schedule:
    """The schedule of a text in YAML."""
    return schedule_of(load_yaml(text))


def schedule_of(data: object) -> Schedule:
    """The schedule of a plain value."""
    if not isinstance(data, dict):
        raise BadInput("a schedule is a mapping with `processes` and `steps`")
    unknown = set(map(str, data)) - {"processes", "groups", "links", "separators", "options", "steps"}
    if unknown:
        raise BadInput(f"unknown field {quote(min(unknown))}")
    for name in ("processes", "steps"):
        if not isinstance(data.get(name), list) or not data[name]:
            raise BadInput(f"field `{name}`: a list with at least one entry is needed")
    options = options_in(data)
    if len(data["steps"]) > MOST_STEPS:
        raise BadInput(f"field `steps`: {len(data['steps'])} steps, more than {MOST_STEPS}")
    system = build_system(data["processes"], data.get("groups"), data.get("links"), data.get("separators"))
    reader = _Steps(system)
    steps = tuple(map(reader.read, data["steps"]))
    return Schedule(reader.system, steps, options)


def options_in(data: Mapping[str, Any]) -> dict[str, Any]:
    """The options of protocols in the field `options`; of which protocol, it does not say."""
    options = data.get("options") or {}
    if not isinstance(options, dict):
        raise BadInput("field `options`: a mapping of names to values is needed")
    for name in map(str, options):
        if name not in OPTION_NAMES:
            known = ", ".join(OPTION_NAMES)
            raise BadInput(f"field `options`: no protocol has an option {quote(name)}; there are {known}")
    return {str(name): value for name, value in options.items()}


class _Steps:
    """Reads steps one after the other, and knows what was sent and received so far."""

    FIELDS: Mapping[str, frozenset[str]] = {
        "send": frozenset({"from", "to", "group", "merge"}),
        "receive": frozenset({"at", "merge"}),
        "lose": frozenset({"at"}),
        "duplicate": frozenset({"at"}),
        "tick": frozenset({"at"}),
        "null": frozenset({"group"}),
        "corrupt": frozenset({"at", "seed"}),
    }

    def __init__(self, system: System) -> None:
        self.system = system
        self._position = 0
        self._several: dict[tuple[int, ...], int] = {}
        self._copies: dict[tuple[str, int], int] = {}
        self._sent: dict[str, Processes] = {}

    def read(self, data: Any) -> Step:
        self._position += 1
        try:
            return self._read(data)
        except BadInput as error:
            raise BadInput(f"step {self._position}: {error}") from None

    def _read(self, data: Any) -> Step:
        if data == "drain":
            return Step("drain")
        if not isinstance(data, dict):
            raise BadInput(
                f"{quote(data)} is not a step; steps are mappings such as {{receive: a, at: p2}}, or drain"
            )
        if None in data:  # YAML reads a bare `null` as no value
            data = {"null" if key is None else key: value for key, value in data.items()}
        kinds = [kind for kind in self.FIELDS if kind in data]
        if len(kinds) != 1:
            raise BadInput(f"a step has exactly one of {', '.join(self.FIELDS)}")
        kind = kinds[0]
        unknown = set(map(str, data)) - self.FIELDS[kind] - {kind}
        if unknown:
            raise BadInput(f"a {kind} step has no field {quote(min(unknown))}")
        return getattr(self, f"_{kind}")(data)  # type: ignore[no-any-return]

    def _process(self, data: Mapping[str, Any], name: str) -> int:
        if name not in data:
            raise BadInput(f"field `{name}` is missing")
        return self._named(data[name])

    def _named(self, value: Any) -> int:
        if not isinstance(value, str):
            raise BadInput(f"{quote(value)} is not a process name")
        return self.system.index(value)

    def _name(self, value: Any) -> str:
        if not isinstance(value, str) or not is_text(value) or len(value) > 1000:
            raise BadInput(f"{quote(value)} is not a message name")
        return value

    def _group(self, value: Any) -> int:
        if not isinstance(value, str):
            raise BadInput(f"{quote(value)} is not a group name")
        return self.system.group_index(value)

    def _groups(self, value: Any) -> int:
        """A group, or a name for several, which the system is given when it has none."""
        if not isinstance(value, list):
            return self._group(value)
        if not value:
            raise BadInput("field `group`: a list with at least one group is needed")
        parts = tuple(sorted({self._group(name) for name in value}))
        if len(parts) < len(value):
            raise BadInput("field `group`: a group is there twice")
        if len(parts) == 1:
            return parts[0]
        if parts not in self._several:
            if len(self._several) == MOST_SEVERAL:
                raise BadInput(f"field `group`: more than {MOST_SEVERAL:,} different lists of groups")
            groups = self.system.groups
            self._several[parts] = len(groups)
            self.system = changed(self.system, groups=(*groups, together(groups, parts)))
        return self._several[parts]

    def _send(self, data: Mapping[str, Any]) -> Step:
        name = self._name(data["send"])
        if name in self._sent:
            raise BadInput(f"message {quote(name)} is sent twice")
        if "!" in name:
            raise BadInput(f"message {quote(name)}: names with ! are for control messages")
        sender = self._process(data, "from")
        if "to" not in data and "group" not in data:
            raise BadInput("a send has either `to` or `group`")
        group = None
        if "group" in data:
            group = self._groups(data["group"])
            targets = self.system.groups[group].members & ~only(sender)
        if "to" in data:
            if not isinstance(data["to"], list) or not data["to"]:
                raise BadInput("field `to`: a list with at least one process is needed")
            targets = mask(map(self._named, data["to"]))
            if targets.bit_count() < len(data["to"]):
                raise BadInput("field `to`: a process is there twice")
            if targets == only(sender):
                raise BadInput("a message cannot be addressed to its sender alone")
            if group is not None and not self.system.is_addressed(sender, targets, group, opens=True):
                raise BadInput("a send has either `to` or `group`; or both, where `to` has all its members")
        self._sent[name] = targets
        for target in members(targets):
            self._copies[name, target] = 1
        return Step("send", name, sender, targets, group, merge=self._merge(data))

    def _merge(self, data: Mapping[str, Any]) -> bool:
        found = data.get("merge", True)
        if not isinstance(found, bool):
            raise BadInput(f"field `merge`: true or false is needed, not {quote(found)}")
        return found

    def _copy(self, data: Mapping[str, Any], kind: str, change: int) -> Step:
        """A step that concerns one copy of a message; control messages are known only at the replay."""
        name = self._name(data[kind])
        at = self._process(data, "at")
        if "!" not in name:
            if name not in self._sent:
                raise BadInput(f"message {quote(name)} was never sent before this")
            if (name, at) not in self._copies:
                raise BadInput(f"message {quote(name)} is not addressed to {self.system.name(at)}")
            if self._copies[name, at] < 1:
                raise BadInput(
                    f"no copy of {quote(name)} is under way to {self.system.name(at)} any more "
                    "(received or lost before)"
                )
            self._copies[name, at] += change
        return Step(kind, name, at)

    def _receive(self, data: Mapping[str, Any]) -> Step:
        return changed(self._copy(data, "receive", -1), merge=self._merge(data))

    def _lose(self, data: Mapping[str, Any]) -> Step:
        return self._copy(data, "lose", -1)

    def _duplicate(self, data: Mapping[str, Any]) -> Step:
        return self._copy(data, "duplicate", +1)

    def _whole(self, value: Any, what: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadInput(f"{what} must be a whole number from 0, not {quote(value)}")
        if value >= 2**62:
            raise BadInput(f"{what} is too large: below 2^62 is needed")
        return value

    def _tick(self, data: Mapping[str, Any]) -> Step:
        now = self._whole(data["tick"], "the clock")
        return Step("tick", process=self._process(data, "at") if "at" in data else None, now=now)

    def _null(self, data: Mapping[str, Any]) -> Step:
        process = self._process(data, "null")
        group = None
        if "group" in data:
            group = self._group(data["group"])
            if not self.system.groups[group].members >> process & 1:
                raise BadInput(f"{self.system.name(process)} is not a member of {data['group']}")
        return Step("null", process=process, group=group)

    def _corrupt(self, data: Mapping[str, Any]) -> Step:
        seed = self._whole(data.get("seed", 0), "the seed")
        if "at" in data:
            step = self._copy({"corrupt": data["corrupt"], "at": data["at"]}, "corrupt", 0)
            return changed(step, seed=seed)
        return Step("corrupt", process=self._process(data, "corrupt"), seed=seed)


def write_schedule(schedule: Schedule) -> str:
    """The schedule as YAML, one step per line."""
    lines = system_lines(schedule.system, schedule.options)
    lines.append("steps:")
    lines += [f"  - {_inline(_plain_step(step, schedule.system))}" for step in schedule.steps]
    return "\n".join(lines) + "\n"


def system_lines(system: System, options: Mapping[str, Any]) -> list[str]:
    """A system and options as lines of YAML, one field each."""
    lines = [f"processes: {_inline(list(system.processes))}"]
    if system.groups:
        lines.append(
            f"groups: {_inline({g.name: system.names(g.members) for g in system.groups if not g.parts})}"
        )
    if system.links is not None:
        pairs = [
            [system.name(p), system.name(q)]
            for p in range(system.size)
            for q in members(system.links[p])
            if p < q
        ]
        lines.append(f"links: {_inline(pairs)}")
    if system.separators:
        named = [
            {
                "members": system.names(s.members),
                "forward": system.names(s.forward),
                "backward": system.names(s.backward),
            }
            for s in system.separators
        ]
        lines.append(f"separators: {_inline(named)}")
    if options:
        lines.append(f"options: {_inline(dict(options))}")
    return lines


def _inline(value: Any) -> str:
    """A value on one line of YAML; letters as they are, but line breaks of any kind escaped."""
    if isinstance(value, tuple):
        value = list(value)
    readable = not any(mark in repr(value) for mark in ("\\x", "\\u"))
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=readable
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _plain_step(step: Step, system: System) -> Any:
    at: dict[str, Any] = {} if step.process is None else {"at": system.name(step.process)}
    merge = {} if step.merge else {"merge": False}
    match step.kind:
        case "drain":
            return "drain"
        case "send":
            sent: dict[str, Any] = {"send": step.message, "from": system.name(step.process or 0)}
            own = step.targets >> (step.process or 0) & 1
            if step.group is None or own:  # a group alone does not name the sender
                sent |= {"to": system.names(step.targets)}
            if step.group is None:
                return sent | merge
            names = [system.groups[part].name for part in system.parts(step.group)]
            return sent | {"group": names if len(names) > 1 else names[0]} | merge
        case "tick":
            return {"tick": step.now} | at
        case "null":
            name = {"null": system.name(step.process or 0)}
            return name if step.group is None else name | {"group": system.groups[step.group].name}
        case "corrupt" if not step.message:
            return {"corrupt": system.name(step.process or 0), "seed": step.seed}
        case "corrupt":
            return {"corrupt": step.message} | at | {"seed": step.seed}
        case _:
            return {step.kind: step.message} | at | merge


def names_in(schedule: Schedule) -> dict[str, str]:
    """What the messages `p1:1`, `p1:2`, … are called in a schedule."""
    sent: dict[int, int] = {}
    names = {}
    for step in schedule.steps:
        if step.kind == "send" and step.process is not None:
            sent[step.process] = sent.get(step.process, 0) + 1
            names[f"{schedule.system.name(step.process)}:{sent[step.process]}"] = step.message
    return names


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text about messages `p1:2` with the names that a schedule has for them."""
    if not names:
        return text
    ids = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w:!])(?:{ids})(?![\w])", lambda found: names[found[0]], text)


def letters(count: int) -> Sequence[str]:
    """Names for messages: a … z, then a1 …"""
    return [chr(ord("a") + i % 26) + (str(i // 26) if i >= 26 else "") for i in range(count)]
