"""Topologies: what people write becomes a System, and every mistake in it is named in one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.model import Group, Separator, System, mask, members, named_processes
from causet.plain import load_plain
from causet.topology import (
    Topology,
    build_system,
    groups_of,
    links_of,
    read_topology,
    separators_of,
)

PATH = [["p1", "p2"], ["p2", "p3"]]
MIDDLE = {"members": ["p2"], "forward": ["p3"], "backward": ["p1"]}
SMALL_OR_LARGE = "a group has at least 2 members and at most all processes"
TOO_MANY = "there must be from 1 to 100000 groups with at most 1000000 members in all"
GROUP_SHAPES = "the shapes are all, unicast, ring:SIZE, random:COUNTxSIZE, pairs, chain, twins"


def built(
    processes: Any = ("p1", "p2", "p3"), groups: Any = None, links: Any = None, separators: Any = None
) -> System:
    """`build_system` for values that its types would not let through, as files bring them."""
    return build_system(processes, groups, links, separators)


def sets(groups: Sequence[Group]) -> list[list[int]]:
    return [list(members(group.members)) for group in groups]


@contextmanager
def refused(sentence: str) -> Iterator[None]:
    with pytest.raises(BadInput) as caught:
        yield
    assert str(caught.value) == sentence


# build_system


def test_names_become_numbers_and_masks() -> None:
    system = built(groups={"g1": ["p3", "p1"], "g2": ["p1", "p2", "p3"]}, links=PATH, separators=[MIDDLE])
    assert system == System(
        processes=("p1", "p2", "p3"),
        groups=(Group("g1", 0b101), Group("g2", 0b111)),
        links=(0b010, 0b101, 0b010),
        separators=(Separator(members=0b010, forward=0b100, backward=0b001),),
    )


def test_without_links_everyone_is_linked_with_everyone() -> None:
    assert built().links is None


def test_an_empty_list_of_links_links_nobody() -> None:
    assert built(links=[]).links == (0, 0, 0)


def test_links_lead_both_ways_and_may_be_repeated() -> None:
    assert built(links=[["p2", "p1"], ["p1", "p2"]]).links == (0b010, 0b001, 0)


def test_groups_may_have_the_same_members() -> None:
    twins = built(groups={"g1": ["p1", "p2"], "g2": ["p2", "p1"]}).groups
    assert twins == (Group("g1", 0b11), Group("g2", 0b11))


KNOWN = "the processes are p1, p2, p3"
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no processes": ({"processes": []}, "processes: there are none"),
    "processes as text": (
        {"processes": "p1 p2"},
        'processes: expected a list of names, found "p1 p2"',
    ),
    "a repeated process": ({"processes": ["p1", "p2", "p1"]}, 'processes: "p1" appears twice'),
    "an empty process name": ({"processes": ["p1", ""]}, "processes: name 2 is empty"),
    "a blank process name": ({"processes": [" "]}, "processes: name 1 is empty"),
    "a number as process name": (
        {"processes": ["p1", 2]},
        "processes: name 2 is 2, which is not text; put it in quotes",
    ),
    "too many processes": (
        {"processes": [str(number) for number in range(100_001)]},
        "processes: 100001 names are too many, at most 100000 are allowed",
    ),
    "groups as a list": (
        {"groups": [["p1", "p2"]]},
        'groups: expected names with their members, found [["p1", "p2"]]',
    ),
    "an empty group name": ({"groups": {"": ["p1", "p2"]}}, "groups: name 1 is empty"),
    "a number as group name": (
        {"groups": {1: ["p1", "p2"]}},
        "groups: name 1 is 1, which is not text; put it in quotes",
    ),
    "an unknown process in a group": (
        {"groups": {"g1": ["p1", "p9"]}},
        f'group "g1": unknown process "p9"; {KNOWN}',
    ),
    "a group of one": (
        {"groups": {"g1": ["p1"]}},
        'group "g1": a group has at least 2 members, and this one has 1',
    ),
    "a group of nobody": (
        {"groups": {"g1": []}},
        'group "g1": a group has at least 2 members, and this one has 0',
    ),
    "a repeated member": ({"groups": {"g1": ["p1", "p2", "p1"]}}, 'group "g1": "p1" appears twice'),
    "members as text": ({"groups": {"g1": "p1"}}, 'group "g1": expected a list of names, found "p1"'),
    "links as a mapping": ({"links": {"p1": "p2"}}, 'links: expected a list of links, found {"p1": "p2"}'),
    "a link of three": (
        {"links": [["p1", "p2"], ["p1", "p2", "p3"]]},
        "link 2: a link is a pair of processes, and this one names 3",
    ),
    "a link that is text": ({"links": ["p1"]}, 'link 1: expected a list of names, found "p1"'),
    "a link with itself": ({"links": [["p2", "p2"]]}, 'link 1: "p2" is linked with itself'),
    "an unknown process in a link": ({"links": [["p1", "p4"]]}, f'link 1: unknown process "p4"; {KNOWN}'),
    "too many links": (
        {"links": [["p1", "p2"]] * 1_000_001},
        "links: 1000001 links are too many, at most 1000000 are allowed",
    ),
    "a separator without links": (
        {"separators": [MIDDLE]},
        "separators: they need links; without links everyone is linked with everyone",
    ),
    "a separator in a disconnected graph": (
        {"links": [["p1", "p2"]], "separators": [MIDDLE]},
        'separators: they need a connected graph, and no path leads from "p1" to "p3"',
    ),
    "a separator that is no mapping": (
        {"links": PATH, "separators": [["p2"]]},
        'separator 1: expected members, forward and backward, found ["p2"]',
    ),
    "an unknown key in a separator": (
        {"links": PATH, "separators": [MIDDLE | {"sideward": []}]},
        'separator 1: unknown key "sideward"; the keys are members, forward, backward',
    ),
    "a missing key in a separator": (
        {"links": PATH, "separators": [{"members": ["p2"], "forward": ["p1", "p3"]}]},
        "separator 1: backward is missing; the keys are members, forward, backward",
    ),
    "an empty side of a separator": (
        {"links": PATH, "separators": [MIDDLE | {"forward": []}]},
        "separator 1, forward: it is empty",
    ),
    "an unknown process in a separator": (
        {"links": PATH, "separators": [MIDDLE | {"forward": ["p4"]}]},
        f'separator 1, forward: unknown process "p4"; {KNOWN}',
    ),
    "overlapping sides of a separator": (
        {"links": PATH, "separators": [MIDDLE, MIDDLE | {"forward": ["p3", "p2"]}]},
        'separator 2: "p2" is both in members and in forward',
    ),
    "a process twice on one side of a separator": (
        {"links": PATH, "separators": [MIDDLE | {"forward": ["p3", "p3"]}]},
        'separator 1, forward: "p3" appears twice',
    ),
    "a process that a separator leaves out": (
        {"links": [*PATH, ["p3", "p4"]], "processes": ["p1", "p2", "p3", "p4"], "separators": [MIDDLE]},
        'separator 1: "p4" is in none of members, forward, backward',
    ),
    "a separator with a way around it": (
        {"links": [*PATH, ["p1", "p3"]], "separators": [MIDDLE]},
        'separator 1: it does not separate; "p3" in forward and "p1" in backward are linked',
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_in_one_sentence(mistake: str) -> None:
    given, sentence = MISTAKES[mistake]
    with refused(sentence):
        built(**given)


def test_of_many_processes_the_first_eight_are_named() -> None:
    with pytest.raises(BadInput, match=r"the processes are p1, .*p8, …$"):
        built(processes=named_processes(9), groups={"g1": ["x", "p1"]})


def test_names_in_sentences_are_escaped_and_cut() -> None:
    with pytest.raises(BadInput) as caught:
        built(groups={"g1": ["p1", "\x1b[2J\u202e" + "x" * 500]})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


# Shapes of groups


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ("all", 3, [[0, 1, 2]]),
        ("unicast", 3, []),
        ("unicast", 1, []),
        ("twins", 2, [[0, 1], [0, 1]]),
        ("pairs", 3, [[0, 1], [0, 2], [1, 2]]),
        ("ring:2", 4, [[0, 1], [1, 2], [2, 3], [0, 3]]),
        ("ring:3", 4, [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]]),
        ("ring:4", 4, [[0, 1, 2, 3]]),
        ("random:1x3", 3, [[0, 1, 2]]),
    ],
)
def test_a_shape_stands_for_its_groups(shape: str, size: int, expected: list[list[int]]) -> None:
    groups = groups_of(shape, size, seed=1)
    assert sets(groups) == expected
    assert [group.name for group in groups] == [f"g{number}" for number in range(1, len(expected) + 1)]


@pytest.mark.parametrize("seed", range(20))
def test_random_groups_are_different_and_reach_everyone(seed: int) -> None:
    groups = sets(groups_of("random:4x3", 10, seed))
    assert [len(group) for group in groups] == [3, 3, 3, 3]
    assert len({tuple(group) for group in groups}) == 4
    assert {p for group in groups for p in group} == set(range(10))


def test_random_groups_too_few_to_reach_everyone_are_still_different() -> None:
    groups = sets(groups_of("random:2x3", 10, seed=5))
    assert [len(group) for group in groups] == [3, 3]
    assert groups[0] != groups[1]


def test_random_groups_can_be_all_there_are() -> None:
    assert sorted(sets(groups_of("random:10x2", 5, seed=3))) == [list(p) for p in combinations(range(5), 2)]


def test_random_groups_depend_on_the_seed_alone() -> None:
    drawn = [groups_of("random:5x3", 8, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("shape", "size", "sentence"),
    [
        ("rings", 5, 'unknown group shape "rings"'),
        ("ring:", 5, 'unknown group shape "ring:"'),
        ("ring:-2", 5, 'unknown group shape "ring:-2"'),
        ("random:3", 5, 'unknown group shape "random:3"'),
        ("all", 1, 'group shape "all" needs at least 2 processes'),
        ("twins", 1, 'group shape "twins" needs at least 2 processes'),
        ("pairs", 1, 'group shape "pairs" needs at least 2 processes'),
        (
            "ring:1",
            5,
            f'group shape "ring:1" asks for groups of 1 among 5 processes; {SMALL_OR_LARGE}',
        ),
        (
            "ring:6",
            5,
            f'group shape "ring:6" asks for groups of 6 among 5 processes; {SMALL_OR_LARGE}',
        ),
        (
            "random:7x2",
            4,
            'group shape "random:7x2" asks for 7 different groups of 2, and 4 processes have only 6',
        ),
        (
            "random:0x2",
            4,
            f'group shape "random:0x2" makes 0 groups of 2; {TOO_MANY}',
        ),
        (
            "pairs",
            1000,
            f'group shape "pairs" makes 499500 groups of 2; {TOO_MANY}',
        ),
        (
            "ring:50000",
            100_000,
            f'group shape "ring:50000" makes 100000 groups of 50000; {TOO_MANY}',
        ),
    ],
)
def test_a_bad_group_shape_is_named_with_the_shapes_there_are(shape: str, size: int, sentence: str) -> None:
    with refused(f"{sentence}; {GROUP_SHAPES}"):
        groups_of(shape, size, seed=1)


@pytest.mark.parametrize("size", [-1, 0, 100_001])
def test_a_shape_needs_a_possible_number_of_processes(size: int) -> None:
    for make in (lambda: groups_of("all", size, 1), lambda: links_of("path", size)):
        with refused(f"{size} processes: there must be from 1 to 100000"):
            make()


# Shapes of graphs


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ("path", 1, [[]]),
        ("path", 4, [[1], [0, 2], [1, 3], [2]]),
        ("star", 4, [[1, 2, 3], [0], [0], [0]]),
        ("cycle", 3, [[1, 2], [0, 2], [0, 1]]),
        ("cycle", 4, [[1, 3], [0, 2], [1, 3], [0, 2]]),
        ("tail", 3, [[1, 2], [0, 2], [0, 1]]),
        ("tail", 5, [[1, 2], [0, 2], [0, 1, 3], [2, 4], [3]]),
    ],
)
def test_a_shape_stands_for_its_links(shape: str, size: int, expected: list[list[int]]) -> None:
    links = links_of(shape, size)
    assert links is not None
    assert [list(members(near)) for near in links] == expected


def test_a_full_graph_needs_no_links() -> None:
    assert links_of("full", 5) is None


@pytest.mark.parametrize(
    ("shape", "size", "sentence"),
    [
        ("ring", 5, 'unknown link shape "ring"; the shapes are full, path, star, cycle, tail'),
        ("cycle", 2, 'link shape "cycle" needs at least 3 processes, and there are 2'),
        ("tail", 2, 'link shape "tail" needs at least 3 processes, and there are 2'),
    ],
)
def test_a_bad_link_shape_is_named(shape: str, size: int, sentence: str) -> None:
    with refused(sentence):
        links_of(shape, size)


# Separators


def found(links: Sequence[int] | None) -> list[tuple[list[int], list[int], list[int]]]:
    assert links is not None
    return [
        (list(members(s.members)), list(members(s.forward)), list(members(s.backward)))
        for s in separators_of(links, len(links))
    ]


def test_the_separators_of_a_path_of_four() -> None:
    assert found(links_of("path", 4)) == [
        ([1], [0], [2, 3]),
        ([1], [2, 3], [0]),
        ([2], [0, 1], [3]),
        ([2], [3], [0, 1]),
        ([0, 2], [1], [3]),
        ([0, 2], [3], [1]),
        ([1, 2], [0], [3]),
        ([1, 2], [3], [0]),
        ([1, 3], [0], [2]),
        ([1, 3], [2], [0]),
    ]


def test_the_separators_of_a_cycle_of_four_are_its_opposite_pairs() -> None:
    assert found(links_of("cycle", 4)) == [
        ([0, 2], [1], [3]),
        ([0, 2], [3], [1]),
        ([1, 3], [0], [2]),
        ([1, 3], [2], [0]),
    ]


def test_three_components_are_put_on_two_sides_in_six_ways() -> None:
    around_the_centre = [sides for sides in found(links_of("star", 4)) if sides[0] == [0]]
    assert around_the_centre == [
        ([0], [1], [2, 3]),
        ([0], [2], [1, 3]),
        ([0], [1, 2], [3]),
        ([0], [3], [1, 2]),
        ([0], [1, 3], [2]),
        ([0], [2, 3], [1]),
    ]
    assert len(found(links_of("star", 4))) == 6 + 3 * 2  # and the centre with one of the others


def test_a_triangle_with_a_tail_is_separated_where_the_tail_begins() -> None:
    assert [sides for sides in found(links_of("tail", 4)) if sides[1] == [3]] == [
        ([2], [3], [0, 1]),
        ([0, 2], [3], [1]),
        ([1, 2], [3], [0]),
    ]


def test_a_complete_graph_has_no_separator() -> None:
    assert separators_of([0b110, 0b101, 0b011], 3) == ()


@pytest.mark.parametrize("shape", ["path", "star", "cycle", "tail"])
def test_every_separator_found_is_one_that_a_file_may_give(shape: str) -> None:
    links = links_of(shape, 5)
    assert links is not None
    names = named_processes(5)
    pairs = [[names[p], names[q]] for p, near in enumerate(links) for q in members(near)]
    expected = separators_of(links, 5)
    given: list[Mapping[str, Sequence[str]]] = [
        {side: [names[p] for p in members(getattr(s, side))] for side in ("members", "forward", "backward")}
        for s in expected
    ]
    assert build_system(names, None, pairs, given).separators == expected
    assert expected


def test_separators_are_searched_for_in_small_graphs_only() -> None:
    with refused("11 processes: every separator is searched for among 1 to 10 only"):
        separators_of([0] * 11, 11)


def test_separators_need_the_neighbours_of_everyone() -> None:
    with refused("links: there are 3 processes and neighbours of 2"):
        separators_of([2, 1], 3)


# Files


def written(tmp_path: Path, content: str | bytes, name: str = "t.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_topology_is_read_from_yaml(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
processes: [p1, p2, p3]
groups: {g1: [p1, p2, p3]}
links: [[p1, p2], [p2, p3]]
separators: [{members: [p2], forward: [p3], backward: [p1]}]
""",
    )
    assert read_topology(path) == Topology(
        processes=("p1", "p2", "p3"),
        groups={"g1": ("p1", "p2", "p3")},
        links=(("p1", "p2"), ("p2", "p3")),
        separators=({"members": ("p2",), "forward": ("p3",), "backward": ("p1",)},),
    )


def test_a_topology_is_read_from_json(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"groups": {"g1": ["p1", "p2"]}}), "t.json")
    assert read_topology(path) == Topology(groups={"g1": ("p1", "p2")})


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert read_topology(written(tmp_path, b"\xef\xbb\xbflinks: []")) == Topology(links=())


FILES: dict[str, tuple[str | bytes, str, str]] = {
    "an empty file": ("", "t.yaml", ": expected a mapping with some of processes, groups, links, separators, "
                      "found null"),
    "an empty mapping": (
        "groups:",
        "t.yaml",
        ": it says nothing; give at least one of processes, groups, links, separators",
    ),
    "a list": ("[p1]", "t.yaml", ": expected a mapping with some of processes, groups, links, separators, "
               'found ["p1"]'),
    "an unknown field": (
        "procs: [p1]",
        "t.yaml",
        ': unknown field "procs"; the fields are processes, groups, links, separators',
    ),
    "a wrong type": ("groups: [p1]", "t.yaml", ': groups: expected names with their members, found ["p1"]'),
    "a name that YAML takes for a truth value": (
        "processes: [yes]",
        "t.yaml",
        ": processes: name 1 is true, which is not text; put it in quotes",
    ),
    "a mistake that only the system shows": (
        "{processes: [p1, p2], links: [[p1, p3]]}",
        "t.yaml",
        ': link 1: unknown process "p3"; the processes are p1, p2',
    ),
    "an alias": (
        "processes: &a [p1]\ngroups: {g1: *a}",
        "t.yaml",
        ", line 2: an alias (*) is not allowed; write the value out",
    ),
    "a key given twice": (
        "groups:\n  g1: [p1, p2]\n  g1: [p2, p3]",
        "t.yaml",
        ', line 3: the key "g1" appears twice',
    ),
    "a JSON key given twice": (
        '{"groups": {"g1": [], "g1": []}}',
        "t.json",
        ': the key "g1" appears twice',
    ),
    "deep nesting": (
        "links: " + "[" * 100_000,
        "t.yaml",
        ", line 1: nested too deeply, at most 16 levels are read",
    ),
    "deep nesting in JSON": ('{"links": ' + "[" * 100_000, "t.json", ": nested too deeply"),
    "bytes that are no text": (b"links: []\n\xff\xfe", "t.yaml", ", line 2: not UTF-8 text"),
    "an unfinished list in JSON": (
        '{"links":\n[1, ',
        "t.json",
        ", line 2: not JSON: Expecting value",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", FILES)
def test_a_mistake_in_a_file_is_named_with_the_file(mistake: str, tmp_path: Path) -> None:
    content, name, sentence = FILES[mistake]
    path = written(tmp_path, content, name)
    with refused(f"{path}{sentence}"):
        read_topology(path)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("links:\n- [p1, p2\n- [p2, p3]\n", ", line 3: not YAML: "),
        ("links: []\n--- \nlinks: []\n", ", line 2: not YAML: "),
        (
            "links:\n  !!python/object/apply:os.system [ls]",
            ', line 2: the tag "tag:yaml.org,2002:python/object/apply:os.system" ',
        ),
        (
            "groups: !!timestamp x",
            ', line 1: the tag "tag:yaml.org,2002:timestamp" is not allowed; give plain',
        ),
        ("groups: !g {}", ', line 1: the tag "!g" is not allowed; give plain values'),
        ("links: \x00", ": not YAML: "),
        ("? [p1]\n: p2", ", line 1: not YAML: "),
        ("groups: 2024-13-45", ": it has an invalid number or date; put text in quotes"),
        ("groups: " + "9" * 5000, ": it has an invalid number or date; put text in quotes"),
    ],
)
def test_text_that_is_no_plain_yaml_is_bad_input(content: str, where: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadInput, match=f"^{re.escape(f'{path}{where}')}") as caught:
        read_topology(path)
    assert "\n" not in str(caught.value)


def test_a_thousand_million_laughs_are_refused_at_the_first(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path = written(tmp_path, "\n".join(lines))
    with pytest.raises(BadInput, match="line 2: an alias"):
        load_plain(path)


PIECES = st.sampled_from(
    [*"[]{},:-?!&*|>'\"%@`#\n\t ~=<_.+", "<<", "---", "0x", "1:2", "2024-01-01", "p1", "é"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(pieces=st.lists(PIECES, max_size=12), name=st.sampled_from(["t.yaml", "t.json"]))
def test_whatever_a_file_holds_is_a_topology_or_bad_input(
    pieces: list[str], name: str, tmp_path: Path
) -> None:
    with suppress(BadInput):
        read_topology(written(tmp_path, "links: " + "".join(pieces), name))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    with path.open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    with refused(f"{path}: larger than 16 MiB, the most that is read"):
        read_topology(path)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    with refused(f"{path}: cannot be read: No such file or directory"):
        read_topology(path)


def test_a_folder_is_bad_input(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: cannot be read: Is a directory"):
        read_topology(tmp_path)


def test_masks_of_a_large_system_are_right() -> None:
    names = named_processes(2000)
    system = build_system(names, {"g": names[::2]}, [[a, b] for a, b in pairwise(names)])
    assert system.groups[0].members == mask(range(0, 2000, 2))
    assert system.links is not None
    assert list(members(system.links[1000])) == [999, 1001]
