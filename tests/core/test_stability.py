"""Stability: a stamper that is told of a cut forgets what the cut has, and no reader delivers early for it.

What must be true comes from the definition (`tests/helpers/stability`), over random runs; that the model
finds what is wrong is shown by mutants (`tests/mutants/test_stability_mutants.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causet import Stamper, frontier, stamp
from causet.errors import BadInput
from causet.frontier import needs_of
from causet.stamp import cut_of, from_binary, frontier_of, to_binary
from tests.helpers.stability import World, check_cuts_are_safe


def test_no_reader_delivers_early_and_none_that_is_known_waits_for_a_cut() -> None:
    seen = check_cuts_are_safe(frontier, stamp, range(150))
    assert seen["with a cut"] > 0.3 * seen["messages"], seen


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(3))
def test_the_same_in_thousands_of_runs(chunk: int) -> None:
    check_cuts_are_safe(frontier, stamp, range(1000 * (chunk + 1), 1000 * (chunk + 2)))


def cut(number: int, **groups: dict[str, int]) -> dict[str, Any]:
    return {"number": number, "groups": groups}


def test_a_stamper_forgets_what_a_cut_has_and_says_so() -> None:
    shop, bank, till = (Stamper(name, run="1") for name in ("shop", "bank", "till"))
    order = shop.stamp(to=["orders", "audit"])
    bank.saw(order)
    bank.saw(shop.stamp(to="orders"))
    bank.stable(cut(3, orders={"shop~1": 1}, audit={"shop~1": 1}))
    payment = bank.stamp(to="payments")
    assert frontier_of(payment).past == {"orders": {"shop~1": 2}} and payment["causalcut"] == 3
    assert "causalcut" not in order
    till.saw(payment)
    receipt = till.stamp(to="receipts")
    assert receipt["causalcut"] == 3, "what was read is said, though it was not used"
    assert list(needs_of({"orders": {"shop~1": 1}, "audit": {"shop~1": 1}}, {"orders"})) == [
        (("shop~1", "orders"), 1)
    ]
    bank.saw(order)
    assert frontier_of(bank.stamp(to="payments")).past == {
        "orders": {"shop~1": 2},
        "payments": {"bank~1": 1},
    }, "what a cut has does not come back"


def test_an_older_cut_changes_nothing_and_one_that_was_only_read_can_still_be_used() -> None:
    shop, bank = Stamper("shop", run="1"), Stamper("bank", run="1")
    bank.saw(shop.stamp(to="a"))
    bank.saw(shop.stamp(to="b"))
    bank.stable(cut(5, a={"shop~1": 1}))
    before = bank.save()
    for number in (1, 4, 5):
        bank.stable(cut(number, b={"shop~1": 1}))
        assert bank.save() == before
    bank.saw({"source": "q", "sequence": "1", "causalcut": 9})
    bank.stable(cut(8, a={"shop~1": 1}, b={"shop~1": 1}))
    envelope = bank.stamp(to="c")
    assert (cut_of(envelope), frontier_of(envelope).past) == (9, {"all": {"q": 1}})
    bank.stable(cut(9, all={"q": 1}))
    assert frontier_of(bank.stamp(to="c")).past == {"c": {"bank~1": 1}}


def test_a_later_cut_than_the_one_that_is_named_may_have_the_message_itself() -> None:
    """So a reader that waited for the latest cut could wait for ever, as the model shows as well."""
    with pytest.raises(AssertionError, match="it waits for ever"):
        for seed in range(100):
            World(frontier, stamp, seed, latest=True).run(120)
    shop, bank = Stamper("shop", run="1"), Stamper("bank", run="1")
    bank.saw(shop.stamp(to="orders"))
    cuts = {1: {"orders": {"shop~1": 1}}, 2: {"orders": {"shop~1": 1, "bank~1": 1}}}
    bank.stable(cut(1, **cuts[1]))
    answer = bank.stamp(to="orders")
    assert frontier_of(answer) == ({"orders": 1}, {})
    assert list(needs_of(cuts[cut_of(answer)], {"orders"})) == [(("shop~1", "orders"), 1)]
    assert (("bank~1", "orders"), 1) in needs_of(cuts[2], {"orders"})


def test_ones_own_numbers_are_not_those_of_a_cut() -> None:
    shop = Stamper("shop", run="1")
    shop.stamp(to="orders")
    shop.stable(cut(1, orders={"shop~1": 7}))
    envelope = shop.stamp(to="orders")
    assert frontier_of(envelope) == ({"orders": 2}, {}) and envelope["causalcut"] == 1


def test_a_file_keeps_what_was_forgotten_and_the_number_of_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lines in (1, 10_000):
        monkeypatch.setattr(stamp, "JOURNAL_LINES", lines)
        file, shop = tmp_path / f"bank {lines}", Stamper("shop", run="1")
        first = shop.stamp(to="a")
        with Stamper("bank", file=file) as bank:
            bank.saw(first)
            bank.stable(json.dumps(cut(2, a={"shop~1": 1, "q": 3}, b={"q": 1})))
        with Stamper("bank", file=file) as bank:
            bank.saw({"source": "q", "causalnumbers": '{"a":3}', "causalcut": 6})
        with Stamper("bank", file=file) as bank:
            bank.stable(cut(1, a={"shop~1": 1}))
            bank.saw(first)
            kept = bank.stamp(to="a")
            assert (cut_of(kept), frontier_of(kept).past) == (6, {})
        with Stamper("bank", file=file) as bank:
            assert bank.unsent == [kept]
            bank.stable(cut(3, a={bank.process: 1}))
            again = Stamper.restore(bank.save())
            assert frontier_of(again.stamp()).past == {} == frontier_of(bank.stamp()).past
    assert "causalcut" in kept and to_binary(kept)[0][-1] == ("ce_causalcut", b"6")
    assert from_binary(*to_binary(kept)) == kept


def test_a_state_that_used_a_larger_cut_than_it_knows_is_refused() -> None:
    shop = Stamper("shop")
    shop.stable(cut(3))
    saved = json.loads(shop.save())
    assert (saved["used"], saved["cut"]) == (3, 3)
    with pytest.raises(BadInput, match='"used" is 3, and "cut" has less'):
        Stamper.restore(json.dumps({**saved, "cut": 2}))


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("no", "a cut must be JSON text"),
        ("[]", "a cut must be a map with a number and groups"),
        (None, "a cut must be a map with a number and groups"),
        ({"number": 1}, "a cut must be a map with a number and groups"),
        (cut(1) | {"more": 1}, "a cut must be a map with a number and groups"),
        (cut(0), "the number of a cut cannot be 0"),
        ({"number": True, "groups": {}}, "the number of a cut cannot be true"),
        ({"number": 1, "groups": []}, "the groups of a cut must be a map"),
        (cut(1, a={}), 'group "a" must have entries'),
        (cut(1, a={"p": 0}), 'the number of "p" cannot be 0'),
        (cut(1, a={"": 1}), "cannot be the name of a process"),
        ({"number": 1, "groups": {"": {"p": 1}}}, "cannot be the name of a group"),
        ('{"number": 1, "number": 2, "groups": {}}', "a cut must be JSON text"),
    ],
)
def test_what_is_no_cut_is_refused_and_changes_nothing(odd: Any, said: str) -> None:
    shop = Stamper("shop")
    before = shop.save()
    with pytest.raises(BadInput, match=said):
        shop.stable(odd)
    assert shop.save() == before


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["number", "groups", "a"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    st.booleans(),
)
def test_damaged_cuts_are_refused_in_a_sentence(odd: Any, text: bool) -> None:
    shop = Stamper("shop")
    try:
        shop.stable(json.dumps(odd) if text else odd)
    except BadInput as refused:
        assert "\n" not in str(refused)
    assert frontier_of(shop.stamp()) == ({"all": 1}, {})
