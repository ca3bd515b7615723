"""Groups, links and separators: who is in which group, who may talk to whom, and who stands between.

People write a topology with names, in a schedule or in a file of its own; `build_system` checks it and turns
it into the `System` that the protocols use. Shapes (`ring:3`, `path`, …) stand for topologies that are
tedious to write out. What is wrong with a topology is always `BadInput`, in one sentence that says where.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from pathlib import Path

from causet.errors import BadInput, listed, quote
from causet.model import MOST_GROUPS, Group, Processes, Separator, System, is_text, mask, members
from causet.plain import load_plain

MOST_PROCESSES = 100_000
MOST_MEMBERS = 1_000_000
"""The most members that the groups of a shape have together."""
MOST_LINKS = 1_000_000
MOST_SEPARATORS = 10_000
SEPARABLE = 10
"""The largest graph in which every separator is searched for."""

GROUP_SHAPES = "all, unicast, ring:SIZE, random:COUNTxSIZE, pairs, chain, twins"
LINK_SHAPES = "full, path, star, cycle, tail"


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology by names, as it stands in a file; None where the file says nothing."""

    processes: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[str, ...]] | None = None
    links: tuple[tuple[str, ...], ...] | None = None
    separators: tuple[Mapping[str, tuple[str, ...]], ...] | None = None


FIELDS = tuple(Topology.__dataclass_fields__)
SIDES = ("members", "forward", "backward")


# From names to a System


def build_system(
    processes: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None = None,
    links: Sequence[Sequence[str]] | None = None,
    separators: Sequence[Mapping[str, Sequence[str]]] | None = None,
) -> System:
    """The system that a schedule or topology file describes; BadInput if it cannot be.

    >>> system = build_system(["p1", "p2", "p3"], links=[["p1", "p2"], ["p2", "p3"]])
    >>> [system.names(neighbours) for neighbours in system.links]
    [['p2'], ['p1', 'p3'], ['p2']]
    """
    names = _names(processes, "processes", MOST_PROCESSES)
    if not names:
        raise BadInput("processes: there are none")
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        raise BadInput(f"processes: {_repeated(names)} appears twice")
    neighbours = None if links is None else _neighbours(_links(links), numbers)
    found = _separators(separators or (), names, numbers, neighbours)
    return System(
        processes=names,
        groups=tuple(
            Group(name, _group(inside, f"group {quote(name)}", numbers))
            for name, inside in _groups(groups or {}).items()
        ),
        links=None if neighbours is None else tuple(mask(near) for near in neighbours),
        separators=found,
    )


def _names(value: object, where: str, most: int = MOST_PROCESSES) -> tuple[str, ...]:
    """A list of names; files bring anything, so nothing is taken for granted."""
    names = []
    for position, name in enumerate(_list(value, where, "names", most), 1):
        if not isinstance(name, str):
            raise BadInput(f"{where}: name {position} is {quote(name)}, which is not text; put it in quotes")
        if not name.strip():
            raise BadInput(f"{where}: name {position} is empty")
        if not is_text(name):
            raise BadInput(f"{where}: name {position} holds half a surrogate pair, which is not text")
        names.append(name)
    return tuple(names)


def _list(value: object, where: str, what: str, most: int) -> Sequence[object]:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise BadInput(f"{where}: expected a list of {what}, found {quote(value)}")
    if len(value) > most:
        raise BadInput(f"{where}: {len(value)} {what} are too many, at most {most} are allowed")
    return value


def _groups(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise BadInput(f"groups: expected names with their members, found {quote(value)}")
    if len(value) > MOST_GROUPS:
        raise BadInput(f"groups: {len(value)} groups are too many, at most {MOST_GROUPS} are allowed")
    _names(list(value), "groups", MOST_GROUPS)
    return {name: _names(inside, f"group {quote(name)}") for name, inside in value.items()}


def _links(value: object) -> tuple[tuple[str, ...], ...]:
    pairs = []
    for position, link in enumerate(_list(value, "links", "links", MOST_LINKS), 1):
        pair = _names(link, f"link {position}")
        if len(pair) != 2:
            raise BadInput(f"link {position}: a link is a pair of processes, and this one names {len(pair)}")
        pairs.append(pair)
    return tuple(pairs)


def _sides(value: object) -> tuple[dict[str, tuple[str, ...]], ...]:
    """The separators, each with exactly its three sides."""
    found = []
    for position, sides in enumerate(_list(value, "separators", "separators", MOST_SEPARATORS), 1):
        where = f"separator {position}"
        if not isinstance(sides, Mapping):
            raise BadInput(f"{where}: expected members, forward and backward, found {quote(sides)}")
        for key in sides:
            if key not in SIDES:
                raise BadInput(f"{where}: unknown key {quote(key)}; the keys are {', '.join(SIDES)}")
        for side in SIDES:
            if side not in sides:
                raise BadInput(f"{where}: {side} is missing; the keys are {', '.join(SIDES)}")
        found.append({side: _names(sides[side], f"{where}, {side}") for side in SIDES})
    return tuple(found)


def _repeated(names: Sequence[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return quote(name)
        seen.add(name)
    raise AssertionError("no name is repeated")


def _number(name: str, where: str, numbers: Mapping[str, int]) -> int:
    if name not in numbers:
        raise BadInput(f"{where}: unknown process {quote(name)}; the processes are {listed(numbers)}")
    return numbers[name]


def _group(names: Sequence[str], where: str, numbers: Mapping[str, int]) -> Processes:
    inside = [_number(name, where, numbers) for name in names]
    if len(set(inside)) < len(inside):
        raise BadInput(f"{where}: {_repeated(names)} appears twice")
    if len(inside) < 2:
        raise BadInput(f"{where}: a group has at least 2 members, and this one has {len(inside)}")
    return mask(inside)


def _neighbours(links: Sequence[Sequence[str]], numbers: Mapping[str, int]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in numbers]
    for position, (one, other) in enumerate(links, 1):
        p, q = (_number(name, f"link {position}", numbers) for name in (one, other))
        if p == q:
            raise BadInput(f"link {position}: {quote(one)} is linked with itself")
        neighbours[p].add(q)
        neighbours[q].add(p)
    return neighbours


def _separators(
    value: object, names: Sequence[str], numbers: Mapping[str, int], neighbours: Sequence[set[int]] | None
) -> tuple[Separator, ...]:
    separators = _sides(value)
    if not separators:
        return ()
    if neighbours is None:
        raise BadInput("separators: they need links; without links everyone is linked with everyone")
    apart = set(range(len(names))) - _reached(neighbours)
    if apart:
        raise BadInput(
            "separators: they need a connected graph, and no path leads "
            f"from {quote(names[0])} to {quote(names[min(apart)])}"
        )
    found = []
    for position, sides in enumerate(separators, 1):
        where = f"separator {position}"
        side_of = _partition(sides, where, names, numbers)
        # The sides cover everyone, so a path that avoids the members has a link between the two others.
        for p, near in enumerate(neighbours):
            for q in near:
                if (side_of[p], side_of[q]) == ("forward", "backward"):
                    raise BadInput(
                        f"{where}: it does not separate; {quote(names[p])} in forward and "
                        f"{quote(names[q])} in backward are linked"
                    )
        of_side = {side: mask(p for p, is_in in side_of.items() if is_in == side) for side in SIDES}
        found.append(Separator(**of_side))
    return tuple(found)


def _partition(
    sides: Mapping[str, Sequence[str]], where: str, names: Sequence[str], numbers: Mapping[str, int]
) -> dict[int, str]:
    """The side of each process: exactly one each, and no process left out."""
    side_of: dict[int, str] = {}
    for side, inside in sides.items():
        if not inside:
            raise BadInput(f"{where}, {side}: it is empty")
        for name in inside:
            p = _number(name, f"{where}, {side}", numbers)
            if side_of.get(p) == side:
                raise BadInput(f"{where}, {side}: {quote(name)} appears twice")
            if p in side_of:
                raise BadInput(f"{where}: {quote(name)} is both in {side_of[p]} and in {side}")
            side_of[p] = side
    for p, name in enumerate(names):
        if p not in side_of:
            raise BadInput(f"{where}: {quote(name)} is in none of {', '.join(SIDES)}")
    return side_of


def _reached(neighbours: Sequence[set[int]]) -> set[int]:
    """Everyone whom a path leads to from the first process."""
    reached = {0}
    waiting = [0]
    while waiting:
        new = neighbours[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached


# Shapes


def groups_of(shape: str, system_size: int, seed: int) -> tuple[Group, ...]:
    """The groups of a shape among that many processes, named g1, g2, …; only `random` looks at the seed.

    >>> [list(members(group.members)) for group in groups_of("ring:2", 3, seed=0)]
    [[0, 1], [1, 2], [0, 2]]
    """
    _check_size(system_size)
    if shape == "unicast":
        return ()
    everyone = range(system_size)
    found: Sequence[Sequence[int]]
    if shape == "all":
        found = [_big_enough(everyone, shape)]
    elif shape == "twins":
        found = [_big_enough(everyone, shape)] * 2
    elif shape == "pairs":
        _big_enough(everyone, shape)
        _check_count(comb(system_size, 2), 2, shape)
        found = list(combinations(everyone, 2))
    elif shape == "chain":
        found = list(pairwise(_big_enough(everyone, shape)))
    elif ring := re.fullmatch(r"ring:([0-9]{1,9})", shape):
        found = _ring(int(ring[1]), system_size, shape)
    elif drawn := re.fullmatch(r"random:([0-9]{1,9})x([0-9]{1,9})", shape):
        found = _random(int(drawn[1]), int(drawn[2]), system_size, seed, shape)
    else:
        raise BadInput(f"unknown group shape {quote(shape)}{_no_file(shape)}; the shapes are {GROUP_SHAPES}")
    return tuple(Group(f"g{number}", mask(inside)) for number, inside in enumerate(found, 1))


def _no_file(shape: str) -> str:
    """A dot or a slash means a file."""
    return " (and there is no such file)" if "." in shape or "/" in shape else ""


def _check_size(size: int) -> None:
    if not 1 <= size <= MOST_PROCESSES:
        raise BadInput(f"{size} processes: there must be from 1 to {MOST_PROCESSES}")


def _check_count(count: int, size: int, shape: str) -> None:
    if not 1 <= count <= MOST_GROUPS or count * size > MOST_MEMBERS:
        raise BadInput(
            f"group shape {quote(shape)} makes {count} groups of {size}; there must be from 1 to "
            f"{MOST_GROUPS} groups with at most {MOST_MEMBERS} members in all; the shapes are {GROUP_SHAPES}"
        )


def _big_enough(everyone: Sequence[int], shape: str) -> Sequence[int]:
    if len(everyone) < 2:
        raise BadInput(
            f"group shape {quote(shape)} needs at least 2 processes; the shapes are {GROUP_SHAPES}"
        )
    return everyone


def _check_members(size: int, system_size: int, shape: str) -> None:
    if not 2 <= size <= system_size:
        raise BadInput(
            f"group shape {quote(shape)} asks for groups of {size} among {system_size} processes; a group "
            f"has at least 2 members and at most all processes; the shapes are {GROUP_SHAPES}"
        )


def _ring(size: int, system_size: int, shape: str) -> list[list[int]]:
    _check_members(size, system_size, shape)
    if size == system_size:
        return [list(range(size))]
    _check_count(system_size, size, shape)
    return [[(first + step) % system_size for step in range(size)] for first in range(system_size)]


def _random(count: int, size: int, system_size: int, seed: int, shape: str) -> list[list[int]]:
    """Distinct groups; while they suffice to hold everyone, the first ones deal everyone out."""
    _check_members(size, system_size, shape)
    _check_count(count, size, shape)
    possible = comb(system_size, size)
    if count > possible:
        raise BadInput(
            f"group shape {quote(shape)} asks for {count} different groups of {size}, and {system_size} "
            f"processes have only {possible}; the shapes are {GROUP_SHAPES}"
        )
    # Text as a seed: a simulation that draws from the bare seed must not repeat these draws.
    draw = random.Random(f"groups of {seed}")
    found: set[tuple[int, ...]] = set()
    if count * size >= system_size:
        found.update(_dealt(size, system_size, draw))
    if 2 * count > possible:
        others = [group for group in combinations(range(system_size), size) if group not in found]
        found.update(draw.sample(others, count - len(found)))
    while len(found) < count:
        found.add(tuple(sorted(draw.sample(range(system_size), size))))
    groups = sorted(found)
    draw.shuffle(groups)
    return [list(group) for group in groups]


def _dealt(size: int, system_size: int, draw: random.Random) -> Iterator[tuple[int, ...]]:
    """Everyone in hands of this size; the last hand is filled up from the others."""
    deck = list(range(system_size))
    draw.shuffle(deck)
    for first in range(0, system_size, size):
        hand = deck[first : first + size]
        hand += draw.sample(deck[:first], size - len(hand))
        yield tuple(sorted(hand))


def links_of(shape: str, size: int) -> tuple[Processes, ...] | None:
    """The neighbours of each process in a graph of this shape; None: everyone is linked with everyone.

    `tail` is a triangle of the first three, with each further process linked to the one before it.

    >>> [list(members(near)) for near in links_of("star", 3)]
    [[1, 2], [0], [0]]
    """
    _check_size(size)
    path = [(p, p + 1) for p in range(size - 1)]
    if shape == "full":
        return None
    if shape == "path":
        pairs = path
    elif shape == "star":
        pairs = [(0, p) for p in range(1, size)]
    elif shape in ("cycle", "tail"):
        if size < 3:
            raise BadInput(f"link shape {quote(shape)} needs at least 3 processes, and there are {size}")
        pairs = [*path, (0, size - 1 if shape == "cycle" else 2)]
    else:
        raise BadInput(f"unknown link shape {quote(shape)}{_no_file(shape)}; the shapes are {LINK_SHAPES}")
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for p, q in pairs:
        neighbours[p].add(q)
        neighbours[q].add(p)
    return tuple(mask(near) for near in neighbours)


def separators_of(links: Sequence[Processes], size: int) -> tuple[Separator, ...]:
    """Every separator of a small graph: small member sets first, then by number.

    Whatever is left without the members falls into components; each way to put them into forward and
    backward, neither left empty, is a separator.

    >>> for found in separators_of(links_of("path", 3), 3):
    ...     print(found)
    Separator(members=2, forward=1, backward=4)
    Separator(members=2, forward=4, backward=1)
    """
    if not 1 <= size <= SEPARABLE:
        raise BadInput(f"{size} processes: every separator is searched for among 1 to {SEPARABLE} only")
    if len(links) != size:
        raise BadInput(f"links: there are {size} processes and neighbours of {len(links)}")
    everyone = (1 << size) - 1
    found = []
    for inside in sorted(range(1, everyone), key=lambda inside: (inside.bit_count(), inside)):
        components = _components(links, everyone & ~inside)
        for choice in range(1, (1 << len(components)) - 1):
            forward = 0
            for chosen in members(choice):
                forward |= components[chosen]
            found.append(Separator(inside, forward, everyone & ~inside & ~forward))
    return tuple(found)


def _components(links: Sequence[Processes], left: Processes) -> list[Processes]:
    found = []
    while left:
        component = 0
        edge = left & -left
        while edge:
            component |= edge
            near = 0
            for p in members(edge):
                near |= links[p]
            edge = near & left & ~component
        found.append(component)
        left &= ~component
    return found


# Files


def read_topology(path: str | Path) -> Topology:
    """The topology in a YAML or JSON file; BadInput with the file and the field if it is not one."""
    content = load_plain(path)
    try:
        return _topology(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _topology(content: object) -> Topology:
    if not isinstance(content, Mapping):
        raise BadInput(f"expected a mapping with some of {', '.join(FIELDS)}, found {quote(content)}")
    for key in content:
        if key not in FIELDS:
            raise BadInput(f"unknown field {quote(key)}; the fields are {', '.join(FIELDS)}")
    given = {key: value for key, value in content.items() if value is not None}
    if not given:
        raise BadInput(f"it says nothing; give at least one of {', '.join(FIELDS)}")
    topology = Topology(
        processes=_names(given["processes"], "processes") if "processes" in given else None,
        groups=_groups(given["groups"]) if "groups" in given else None,
        links=_links(given["links"]) if "links" in given else None,
        separators=_sides(given["separators"]) if "separators" in given else None,
    )
    if topology.processes is not None:
        # With the processes known, what is wrong is found here, where the file's name is at hand.
        build_system(topology.processes, topology.groups, topology.links, topology.separators)
    return topology
