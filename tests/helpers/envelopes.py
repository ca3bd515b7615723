"""Envelopes as strangers may write them: strategies for damaged ones."""

from __future__ import annotations

import json

from hypothesis import strategies as st

NAME = st.sampled_from(["a", "b", "ä"]) | st.text(max_size=3)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAME, inner, max_size=2),
    max_leaves=5,
)
NUMBER = st.integers(0, 4) | st.integers(2**53 - 2, 2**53 + 1)
NUMBERS = st.dictionaries(NAME, NUMBER, max_size=3)
ENTRIES = st.dictionaries(NAME, NUMBERS, max_size=3)
ENVELOPE = st.fixed_dictionaries(
    {"source": NAME},
    optional={
        "causalversion": st.sampled_from([1, 2, 3, "2"]) | ANY,
        "causalprocess": NAME | ANY,
        "causalgroups": st.lists(NAME, max_size=3).map(json.dumps) | ANY,
        "causalnumbers": NUMBERS.map(json.dumps) | ANY.map(json.dumps) | ANY,
        "causaldeps": ENTRIES.map(json.dumps) | NUMBERS.map(json.dumps) | ANY.map(json.dumps) | ANY,
        "causalcut": NUMBER | ANY,
        "causaldomain": NAME | ANY,
        "sequence": st.integers(0, 4).map(str) | ANY,
    },
)

CHANNEL = st.builds(
    lambda group, tail: group + tail,
    st.sampled_from(["a", "b", "", "\x1f"]),
    st.sampled_from(
        ["", "\x1f2", "\x1f-1", "\x1f0", "\x1f02", "\x1f+1", "\x1f", "\x1f2\x1f2", "\x1f" + "9" * 10]
    ),
)
PLACED = st.builds(
    lambda base, more: {**base, **more},
    ENVELOPE,
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.text(max_size=2) | ANY,
            "causalpriority": st.integers(-3, 3) | st.sampled_from(["2", "-1", "02", "1e3", "٣"]) | ANY,
            "causalscope": st.sampled_from(["a", "audit", ""]) | ANY,
            "causalbypass": st.sampled_from([True, False, "true", "false", 0, 1, 0.0, None]) | ANY,
            "causalnumbers": st.dictionaries(st.sampled_from("ab"), st.integers(1, 4), min_size=1).map(
                json.dumps
            ),
            "causaldeps": st.dictionaries(
                CHANNEL, st.dictionaries(st.sampled_from(["x", "ben~1"]), st.integers(1, 4), min_size=1)
            ).map(json.dumps),
            "causalgroups": st.lists(st.sampled_from(["a", "b", "\x1f"]), max_size=2).map(json.dumps),
        },
    ),
)
