"""The envelope of a message: a CloudEvent with attributes of ours, read and written.

    causalversion   2; without it, the envelope is of version 1
    causalprocess   the identity under which the source numbers its messages; without it, the source itself
    causalgroups    the groups that the message goes to: a list
    causalnumbers   its number in each of them: group → 1, 2, 3, … per process and group
    causaldeps      the frontier of its past: group → process → number (`causet.frontier`)
    causalcut       the largest number of a cut that the sender used or saw
    causalpriority  how urgent the message is; without it, 0 (`causet.frontier`, incomplete orders)
    causalscope     the scope within which it is numbered and ordered; without it, that of all that have none
    causalbypass    true: it has no number and no past, and is delivered at once
    sequence        the number of a message to one group
    causaltime      r + c and r of the ⟨r, c⟩ clock, in ticks of 1 µs; in version 1, of 1 ms

An envelope without `causalnumbers` is an older one: it goes to one group, its `causaldomain` or else `all`,
its number there is `sequence`, and `causaldeps` is the frontier of that group: process → number.

What strangers wrote is read strictly: it becomes a value, or BadStamp says in a sentence what is wrong.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from causet.errors import BadInput, BadStamp, quote
from causet.frontier import PRIORITY_MARK, Stamped, channel
from causet.model import is_text
from causet.rcclock import TICKS_PER_MS, RcTime

TYPE, HEARTBEAT = "causet.message", "causet.heartbeat"
VERSION_NAME, PROCESS, DOMAIN = "causalversion", "causalprocess", "causaldomain"
GROUPS, NUMBERS, DEPS, CUT = "causalgroups", "causalnumbers", "causaldeps", "causalcut"
PRIORITY, SCOPE, BYPASS = "causalpriority", "causalscope", "causalbypass"
ALL = "all"
"""The group of messages that name none."""
VERSION = 2
"""Of the envelope's extensions."""
MOST_SEQUENCE = 2**53 - 1
"""The largest number of a message: whatever reads JSON reads it exactly, and no source sends that many."""
MOST_URGENT = 2**31 - 1
"""The largest priority; the smallest is below its opposite: the integers of CloudEvents."""
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)
MOST_DEPS = 10_000
"""Numbers that one message names, at most: its own and those of its frontier."""

Numbers = Mapping[str, int]
Entries = Mapping[str, Numbers]
"""group → process → number"""


# Reading what strangers wrote.


def version_of(envelope: Mapping[str, Any]) -> int:
    """The version of an envelope; BadStamp if it is none that can be read.

    >>> version_of({}), version_of({"causalversion": 2}), version_of({"causalversion": "2"})
    (1, 2, 2)
    """
    found = envelope.get(VERSION_NAME)
    if found is None:
        return 1
    if str(found) in ("1", "2"):
        return int(found)
    raise BadStamp(
        f"causalversion must be 1 or 2, not {quote(found)}: a newer release may be able to read it"
    )


def process_of(envelope: Mapping[str, Any]) -> str:
    """The identity under which a message is numbered, its `causalprocess` or else its `source`; BadStamp if
    it has none.

    >>> process_of({"source": "anna"}), process_of({"source": "anna", "causalprocess": "anna~1"})
    ('anna', 'anna~1')
    """
    source, process = envelope.get("source"), envelope.get(PROCESS)
    if not isinstance(source, str) or not is_text(source):
        raise BadStamp(f"an envelope must have a source that is text, not {quote(source)}")
    if process is None:
        return source
    if not isinstance(process, str) or not is_text(process):
        raise BadStamp(f"causalprocess must be text, not {quote(process)}")
    return process


def sequence_of(envelope: Mapping[str, Any]) -> int:
    """The number of a message; BadStamp if it is invalid."""
    found = envelope.get("sequence")
    if not isinstance(found, str) or not found.isascii() or not found.isdigit() or len(found) > 20:
        raise BadStamp(f"sequence must be a number of up to 20 digits, not {quote(found)}")
    if not 1 <= int(found) <= MOST_SEQUENCE:
        raise BadStamp(f"sequence must be between 1 and {MOST_SEQUENCE}, not {quote(found)}")
    return int(found)


def numbers_of(envelope: Mapping[str, Any]) -> dict[str, int]:
    """The number of a message in each of its groups; BadStamp if it is invalid.

    >>> numbers_of({"causalnumbers": '{"orders":7,"audit":2}'}), numbers_of({"sequence": "3"})
    ({'orders': 7, 'audit': 2}, {'all': 3})
    """
    text, listed = envelope.get(NUMBERS), envelope.get(GROUPS)
    if bypasses(envelope):
        return {}
    if text is None:
        domain = envelope.get(DOMAIN)
        if domain is not None and not is_group(domain):
            raise BadStamp(f"causaldomain must be text, not {quote(domain)}")
        return {ALL if domain is None else domain: sequence_of(envelope)}
    found = _parsed(NUMBERS, text)
    if not isinstance(found, dict) or not 1 <= len(found) <= MOST_DEPS:
        raise BadStamp(f"causalnumbers must be a map of 1 to {MOST_DEPS:,} groups, not {quote(text)}")
    _check_numbers(NUMBERS, found, "group")
    if listed is not None:
        names = _parsed(GROUPS, listed)
        if not isinstance(names, list) or len(names) != len(found) or not all(map(is_text, names)):
            raise BadStamp(f"causalgroups must be a list of the groups in causalnumbers, not {quote(listed)}")
        if set(names) != set(found):
            raise BadStamp(
                f"causalgroups must list the groups in causalnumbers, and no other: {quote(listed)}"
            )
    if envelope.get("sequence") is not None and [sequence_of(envelope)] != list(found.values()):
        raise BadStamp(
            f"sequence must be the number in the one group of a message, not {quote(envelope['sequence'])}"
        )
    return found


def is_group(value: object) -> bool:
    """Whether this can be the name of a group."""
    return is_text(value) and PRIORITY_MARK not in str(value)


def is_channel(value: object) -> bool:
    """Whether this can be the name of a channel: a group, and after a mark a priority that is not 0."""
    group, mark, priority = value.partition(PRIORITY_MARK) if isinstance(value, str) else ("", "", "")
    return is_text(group) and (not mark or _whole(priority) not in (None, 0))


def _whole(value: object) -> int | None:
    """The integer of CloudEvents that this is, or its one way to be written."""
    number = int(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value
    return number if type(number) is int and -MOST_URGENT - 1 <= number <= MOST_URGENT else None


def priority_of(envelope: Mapping[str, Any]) -> int:
    """How urgent a message is, 0 if it does not say; BadStamp if it is no number.

    >>> priority_of({}), priority_of({"causalpriority": 2}), priority_of({"causalpriority": "-1"})
    (0, 2, -1)
    """
    found = envelope.get(PRIORITY)
    number = 0 if found is None else _whole(found)
    if number is None:
        raise BadStamp(
            f"causalpriority must be a whole number between -{MOST_URGENT + 1} and {MOST_URGENT}, "
            f"not {quote(found)}"
        )
    return number


def scope_of(envelope: Mapping[str, Any]) -> str | None:
    """The scope within which a message is numbered and ordered; BadStamp if it is no text."""
    found: str | None = envelope.get(SCOPE)
    if found is not None and not is_text(found):
        raise BadStamp(f"causalscope must be text, not {quote(found)}")
    return found


def bypasses(envelope: Mapping[str, Any]) -> bool:
    """Whether a message bypasses the order; BadStamp if it says so and has a part in it, or does not say
    where it goes.

    >>> bypasses({}), bypasses({"causalbypass": True, "id": "a", "causalgroups": '["orders"]'})
    (False, True)
    """
    found = envelope.get(BYPASS)
    if found is None or found is False or found == "false":
        return False
    if found is not True and found != "true":
        raise BadStamp(f"causalbypass must be true or false, not {quote(found)}")
    for name in (NUMBERS, DEPS, CUT, "sequence", PRIORITY, SCOPE):
        if envelope.get(name) is not None:
            raise BadStamp(f"a message that bypasses the order cannot have {name}")
    if not is_text(envelope.get("id")):
        raise BadStamp(
            f"a message that bypasses the order must have an id that is text, not {quote(envelope.get('id'))}"
        )
    names = _parsed(GROUPS, envelope.get(GROUPS))
    if not isinstance(names, list) or not names or not all(map(is_group, names)):
        raise BadStamp(f"causalgroups must be a list of groups, not {quote(envelope.get(GROUPS))}")
    if len({*names}) < len(names):
        raise BadStamp(f"causalgroups must list each group once: {quote(envelope.get(GROUPS))}")
    return True


def channels_of(envelope: Mapping[str, Any]) -> dict[str, int]:
    """The number of a message in each of its channels; BadStamp if it is invalid. No numbers, if it bypasses
    the order.

    >>> channels_of({"causalnumbers": '{"orders":7}', "causalpriority": 2})
    {'orders\\x1f2': 7}
    """
    numbers, priority = numbers_of(envelope), priority_of(envelope)
    if envelope.get(NUMBERS) is None and (priority or envelope.get(SCOPE) is not None):
        raise BadStamp("a message with a priority or a scope must have causalnumbers")
    if scope_of(envelope) is not None and cut_of(envelope):
        raise BadStamp("a message of a scope cannot have causalcut: cuts are of messages without a scope")
    return {channel(group, priority): number for group, number in numbers.items()}


def frontier_of(envelope: Mapping[str, Any]) -> Stamped:
    """The numbers of a message, and the frontier of its past, by channel, within its scope; BadStamp if they
    cannot be read, or if the message would be its own cause.

    >>> frontier_of({"source": "anna", "sequence": "3", "causaldeps": '{"ben":1}'})
    Stamped(numbers={'all': 3}, past={'all': {'ben': 1}})
    """
    version_of(envelope)
    process, numbers = process_of(envelope), channels_of(envelope)
    if not numbers:
        return Stamped({}, {})
    if envelope.get(NUMBERS) is not None:
        past = _past(envelope.get(DEPS), MOST_DEPS - len(numbers))
    else:
        deps = deps_of(envelope)
        past = dict.fromkeys(numbers, deps) if deps else {}
    for group, number in numbers.items():
        if past.get(group, {}).get(process, 0) >= number:
            raise BadStamp(
                f"message {number} of {quote(process)} in {quote(group)} depends on itself or on a later one"
            )
    return Stamped(numbers, past)


def _past(text: object, most: int) -> dict[str, dict[str, int]]:
    found = _parsed(DEPS, "{}" if text is None else text)
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise BadStamp(f"causaldeps must be a map of groups to maps of processes, not {quote(text)}")
    check_entries(DEPS, found, most)
    return found


def check_entries(what: str, entries: dict[Any, Any], most: int | None = None) -> None:
    """BadStamp if this is no map channel → process → number, or one with too many entries."""
    if most is not None and sum(map(len, entries.values())) > most:
        raise BadStamp(f"{what} names more than {MOST_DEPS:,} messages, which is the most")
    for group, numbers in entries.items():
        if not is_channel(group):
            raise BadStamp(f"{what}: {quote(group)} cannot be the name of a group")
        if not isinstance(numbers, dict) or not numbers:
            raise BadStamp(f"{what}: group {quote(group)} must have entries, not {quote(numbers)}")
        _check_numbers(what, numbers, "process")


def _check_numbers(what: str, numbers: Mapping[Any, Any], kind: str) -> None:
    for name, number in numbers.items():
        if not (is_group if kind == "group" else is_text)(name):
            raise BadStamp(f"{what}: {quote(name)} cannot be the name of a {kind}")
        if type(number) is not int or not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp(f"{what}: the number of {quote(name)} cannot be {quote(number)}")


def cut_of(envelope: Mapping[str, Any]) -> int:
    """The largest number of a cut that the sender used or saw, 0 without one; BadStamp if it is invalid.

    >>> cut_of({}), cut_of({"causalcut": 3}), cut_of({"causalcut": "3"})
    (0, 3, 3)
    """
    found = envelope.get(CUT)
    if found is None:
        return 0
    number = found
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 20:
        number = int(found)
    if type(number) is int and 0 <= number <= MOST_SEQUENCE:
        return number
    raise BadStamp(f"causalcut must be a number up to {MOST_SEQUENCE}, not {quote(found)}")


class Cut(NamedTuple):
    """A set of messages that readers wait for: up to a number of each process in each group."""

    number: int
    groups: dict[str, dict[str, int]]


def read_cut(given: object) -> Cut:
    """A cut, as a map or as its JSON text; BadInput if it is none.

    >>> read_cut('{"number": 3, "groups": {"orders": {"shop": 7}}}')
    Cut(number=3, groups={'orders': {'shop': 7}})
    """
    try:
        given = given._asdict() if isinstance(given, Cut) else given
        found = _parsed("a cut", given) if isinstance(given, str) else given
        if not isinstance(found, Mapping) or set(found) != {"number", "groups"}:
            raise BadStamp(f"a cut must be a map with a number and groups, not {quote(given)}")
        number, groups = found["number"], found["groups"]
        if type(number) is not int or not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp(f"the number of a cut cannot be {quote(number)}")
        if not isinstance(groups, dict):
            raise BadStamp(f"the groups of a cut must be a map, not {quote(groups)}")
        check_entries("a cut", groups)
    except BadStamp as error:
        raise BadInput(str(error)) from None
    return Cut(number, groups)


def _parsed(name: str, text: object) -> object:
    """JSON in which no name stands twice."""
    more = ""
    try:
        if isinstance(text, str):
            return json.loads(text, object_pairs_hook=once)
    except Twice:
        more = " in which no name stands twice"
    except (ValueError, RecursionError):
        pass
    raise BadStamp(f"{name} must be JSON text{more}, not {quote(text)}")


class Twice(ValueError):
    """A name stands twice in an object of JSON."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, with no name twice: of the two values, readers of JSON keep not all the same one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Twice
    return found


def deps_of(envelope: Mapping[str, Any]) -> dict[str, int]:
    """The causes that an envelope without `causalnumbers` names; BadStamp if they cannot be read."""
    found = _parsed(DEPS, "{}" if (text := envelope.get(DEPS)) is None else text)
    if not isinstance(found, dict) or len(found) > MOST_DEPS:
        raise BadStamp(f"causaldeps must be a map of up to {MOST_DEPS:,} processes, not {quote(text)}")
    for process, number in found.items():
        if not is_text(process):
            raise BadStamp(f"causaldeps: {quote(process)} cannot be the name of a process")
        if type(number) is not int or not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp(f"causaldeps: the number of {quote(process)} cannot be {quote(number)}")
    return found


def tick_of(envelope: Mapping[str, Any]) -> int:
    """How many ticks of 1 µs a tick of the clock of a message is."""
    return TICKS_PER_MS if version_of(envelope) == 1 else 1


def time_of(envelope: Mapping[str, Any]) -> RcTime | None:
    """The ⟨r, c⟩ time of a message in ticks of 1 µs, if it has one; BadStamp if it cannot be read.

    >>> time_of({"causaltime": "1021 1001"}), time_of({"causaltime": "1021 1001", "causalversion": 2})
    (RcTime(rc=1021000, r=1001000), RcTime(rc=1021, r=1001))
    """
    found = envelope.get("causaltime")
    return None if found is None else RcTime.parse(found, tick_of(envelope))


# Writing.


def canonical(value: Mapping[str, Any] | Sequence[str]) -> str:
    """Names, numbers, and maps of them, as canonical JSON (RFC 8785): keys by their UTF-16 form, no blanks.

    >>> canonical({"p2": 3, "p10": 1}), canonical({"orders": {"shop": 7}}), canonical(["orders", "audit"])
    ('{"p10":1,"p2":3}', '{"orders":{"shop":7}}', '["orders","audit"]')
    """
    return json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"))


def _ordered(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    plain = "".join(value).isascii()  # then the order is that of the characters
    names = sorted(value, key=None if plain else lambda name: name.encode("utf-16-be", "surrogatepass"))
    return {name: _ordered(value[name]) for name in names}


# The Kafka binding: structured mode is the envelope as JSON.


def to_binary(envelope: Mapping[str, Any]) -> tuple[list[tuple[str, bytes]], bytes | None]:
    """Headers and value of a Kafka message in binary mode; BadInput if an attribute cannot be a header."""
    headers = [
        (f"ce_{name}", _header(name, value))
        for name, value in envelope.items()
        if name not in ("data", "data_base64", "datacontenttype")
    ]
    if "data_base64" in envelope:
        kind, value = envelope.get("datacontenttype"), base64.b64decode(envelope["data_base64"])
    elif "data" in envelope:
        kind = envelope.get("datacontenttype", "application/json")
        value = _json(envelope["data"])
    else:
        return headers, None
    return [*headers, *([("content-type", _header("datacontenttype", kind))] if kind else [])], value


def _header(name: str, value: object) -> bytes:
    try:
        return (str(value).lower() if isinstance(value, bool) else str(value)).encode()
    except UnicodeEncodeError:
        raise BadInput(f"the attribute {name} must be text, not {quote(value)}") from None


def _json(data: object) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # JSON of others may have half of a surrogate pair, escaped
        return json.dumps(data, allow_nan=False).encode()


def from_binary(headers: Iterable[tuple[str, bytes]], value: bytes | None) -> dict[str, Any]:
    """The envelope of a Kafka message in binary mode; BadStamp if it is invalid."""
    envelope: dict[str, Any] = {}
    for name, raw in headers:
        if name.startswith("ce_") or name == "content-type":
            try:
                envelope["datacontenttype" if name == "content-type" else name[3:]] = raw.decode()
            except UnicodeDecodeError:
                raise BadStamp(f"header {name} is not UTF-8 text") from None
    if envelope.get(VERSION_NAME) == str(VERSION):  # headers are text, and these are not
        envelope[VERSION_NAME] = VERSION
    if CUT in envelope:
        envelope[CUT] = cut_of(envelope)
    if PRIORITY in envelope:
        envelope[PRIORITY] = priority_of(envelope)
    if envelope.get(BYPASS) in ("true", "false"):
        envelope[BYPASS] = envelope[BYPASS] == "true"
    if not envelope.get("source") or not envelope.get("id"):
        raise BadStamp("a message in binary mode must have the headers ce_source and ce_id")
    if value is not None:
        if envelope.get("datacontenttype", "").split(";")[0].endswith("json"):
            try:
                envelope["data"] = json.loads(value)
            except (ValueError, RecursionError):
                raise BadStamp("the value of a message says that it is JSON, and is not") from None
        else:
            envelope["data_base64"] = base64.b64encode(value).decode()
    return envelope
