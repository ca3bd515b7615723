"""Envelopes that nobody can have meant: an attribute of a good one is changed, and what is said of it."""

from __future__ import annotations

import json
import re
from typing import Any

from causet.errors import BadStamp

DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"sequence": "0"}, "between 1 and"),
    ({"sequence": str(2**60)}, "between 1 and"),
    ({"sequence": "9" * 30}, "up to 20 digits"),
    ({"sequence": 5}, "up to 20 digits"),
    ({"sequence": "٣"}, "up to 20 digits"),
    ({"causaldeps": "no"}, "must be JSON text"),
    ({"causaldeps": "[" * 100_000}, "must be JSON text"),
    ({"causaldeps": "[1]"}, "must be a map"),
    ({"causaldeps": '{"b":1}'}, "must be a map of groups to maps"),
    ({"causaldeps": '{"g":{"b":true}}'}, "cannot be true"),
    ({"causaldeps": '{"g":{"b":-1}}'}, "cannot be -1"),
    ({"causaldeps": '{"g":{"b":1.0}}'}, "cannot be 1.0"),
    ({"causaldeps": f'{{"g":{{"b":{2**53}}}}}'}, "cannot be 9007199254740992"),
    ({"causaldeps": '{"g":{"b":1,"b":2}}'}, "must be JSON text in which no name stands twice"),
    ({"causaldeps": '{"g":{}}'}, 'group "g" must have entries'),
    ({"causaldeps": '{"":{"b":1}}'}, '"" cannot be the name of a group'),
    ({"causaldeps": '{"g":{"\\ud800":1}}'}, "cannot be the name of a process"),
    ({"causaldeps": json.dumps({"g": {str(n): 1 for n in range(10_000)}})}, "more than 10,000 messages"),
    ({"causaldeps": json.dumps({str(n): {"b": 1} for n in range(10_000)})}, "more than 10,000 messages"),
    ({"causaldeps": '{"all":{"anna~1":1}}'}, "depends on itself"),
    ({"causaldeps": '{"all":{"anna~1":7}}'}, "depends on itself or on a later one"),
    ({"causaldeps": '{"all":{"anna":1}}', "causalprocess": None}, "depends on itself"),
    ({"causalnumbers": None, "causaldeps": '{"anna~1":1}'}, "depends on itself"),
    ({"causalnumbers": None, "causaldeps": '{"ben":{}}'}, "cannot be"),
    ({"causalnumbers": None, "causaldomain": ""}, "causaldomain must be text"),
    ({"causalnumbers": "{}"}, "must be a map of 1 to 10,000 groups"),
    ({"causalnumbers": "[1]"}, "must be a map of 1 to 10,000 groups"),
    ({"causalnumbers": 5}, "causalnumbers must be JSON text"),
    ({"causalnumbers": '{"all":0}'}, "cannot be 0"),
    ({"causalnumbers": '{"all":"1"}'}, 'cannot be "1"'),
    ({"causalnumbers": '{"\\ud800":1}'}, "cannot be the name of a group"),
    ({"causalnumbers": '{"all":1,"all":2}'}, "causalnumbers must be JSON text in which no name stands twice"),
    ({"causalnumbers": '{"all":2}'}, "sequence must be the number in the one group"),
    (
        {"causalnumbers": '{"all":1,"b":1}', "causalgroups": None},
        "sequence must be the number in the one",
    ),
    ({"causalnumbers": '{"b":1}'}, "causalgroups must list the groups"),
    ({"causalgroups": "no"}, "causalgroups must be JSON text"),
    ({"causalgroups": '"all"'}, "causalgroups must be a list"),
    ({"causalgroups": '["all","all"]'}, "causalgroups must be a list"),
    ({"causalgroups": "[[]]"}, "causalgroups must be a list"),
    ({"causalcut": -1}, "causalcut must be a number"),
    ({"causalcut": True}, "causalcut must be a number"),
    ({"causalcut": "x"}, "causalcut must be a number"),
    ({"causalcut": 2**53}, "causalcut must be a number"),
    ({"source": ""}, "must have a source"),
    ({"causalprocess": ""}, "causalprocess must be text"),
    ({"causalprocess": 5}, "causalprocess must be text, not 5"),
    ({"causalprocess": "a\ud800"}, "causalprocess must be text"),
    ({"causaltime": "12"}, "r \\+ c and r"),
    ({"causaltime": "12 13"}, "not a time of a clock"),
    ({"causaltime": f"{2**53} 1", "causalversion": None}, "not a time of a clock"),
    ({"causaltime": f"{2**53} 1", "causalversion": 2}, "not a time of a clock"),
    ({"causalversion": 3}, "causalversion must be 1 or 2, not 3"),
    ({"causalversion": "02"}, "causalversion must be 1 or 2"),
    ({"causalversion": True}, "causalversion must be 1 or 2, not true"),
    ({"causalversion": 2.0}, "causalversion must be 1 or 2"),
    ({"causalpriority": "02"}, 'causalpriority must be a whole number between .*, not "02"'),
    ({"causalpriority": "-0"}, 'not "-0"'),
    ({"causalpriority": "٣"}, "causalpriority must be a whole number"),
    ({"causalpriority": True}, "not true"),
    ({"causalpriority": 1.0}, "not 1.0"),
    ({"causalpriority": 2**31}, "not 2147483648"),
    ({"causalpriority": -(2**31) - 1}, "not -2147483649"),
    ({"causalscope": ""}, 'causalscope must be text, not ""'),
    ({"causalscope": 5}, "causalscope must be text, not 5"),
    ({"causalscope": "a", "causalcut": 1}, "a message of a scope cannot have causalcut"),
    ({"causaldeps": '{"g\\u001f0":{"b":1}}'}, "cannot be the name of a group"),
    ({"causaldeps": '{"g\\u001f02":{"b":1}}'}, "cannot be the name of a group"),
    ({"causaldeps": '{"g\\u001f":{"b":1}}'}, "cannot be the name of a group"),
    ({"causaldeps": '{"\\u001f2":{"b":1}}'}, "cannot be the name of a group"),
    ({"causaldeps": '{"g\\u001f2\\u001f2":{"b":1}}'}, "cannot be the name of a group"),
    ({"causaldeps": f'{{"g\\u001f{2**31}":{{"b":1}}}}'}, "cannot be the name of a group"),
    ({"causalnumbers": '{"g\\u001f2":1}', "causalgroups": None}, "cannot be the name of a group"),
    ({"causalnumbers": None, "causaldeps": "{}", "causaldomain": "g\x1f2"}, "causaldomain must be text"),
    ({"causaldeps": '{"all\\u001f2":{"anna~1":1}}', "causalpriority": 2}, "depends on itself"),
    ({"causalnumbers": None, "causaldeps": "{}", "causalpriority": 1}, "must have causalnumbers"),
    ({"causalnumbers": None, "causaldeps": "{}", "causalscope": "a"}, "must have causalnumbers"),
    ({"causalbypass": True}, "bypasses the order cannot have causalnumbers"),
    ({"causalbypass": "yes"}, 'causalbypass must be true or false, not "yes"'),
    ({"causalbypass": 0}, "causalbypass must be true or false, not 0"),
]
_PAST: dict[str, Any] = {"causalbypass": True, "causalnumbers": None, "causaldeps": None, "sequence": None}
"""Past the order."""
DAMAGED += [
    ({**_PAST, **change}, said)
    for change, said in (
        ({"causaldeps": "{}"}, "cannot have causaldeps"),
        ({"causalcut": 1}, "cannot have causalcut"),
        ({"sequence": "1"}, "cannot have sequence"),
        ({"causalpriority": 1}, "cannot have causalpriority"),
        ({"causalscope": "a"}, "cannot have causalscope"),
        ({"id": ""}, "must have an id that is text"),
        ({"id": 5}, "must have an id that is text"),
        ({"causalgroups": "[]"}, "causalgroups must be a list of groups"),
        ({"causalgroups": '["a\\u001f2"]'}, "causalgroups must be a list of groups"),
        ({"causalgroups": '["a","a"]'}, "causalgroups must list each group once"),
        ({"causalgroups": None}, "causalgroups must be JSON text"),
        ({"source": ""}, "must have a source"),
        ({"causalversion": 3}, "causalversion must be 1 or 2"),
    )
]


def check_damaged(stamp: Any, change: dict[str, Any], said: str) -> None:
    """It is refused in these words, and changes nothing."""
    envelope = {**stamp.Stamper("anna", run="1").stamp(), **change}
    ben = stamp.Stamper("ben")
    before = ben.save()
    try:
        ben.saw(envelope)
    except BadStamp as refused:
        assert re.search(said, str(refused)), refused
    else:
        raise AssertionError(f"it was accepted: {change}")
    assert ben.save() == before
