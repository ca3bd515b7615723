"""Kinds of JSON values, as they are seen in the fields of many lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from causet.formats.schema import EXACT

MOST_FIELDS = 1_000
"""Names in one object; where there are more, the names are data."""


@dataclass(slots=True)
class Kinds:
    """What a field held: kinds of plain values, the items of lists, the fields of objects.

    An integer that has no exact float is `big`, any other is `int`; `many` stands for the fields of objects
    that have too many. Null is ignored.
    """

    plain: set[str] = field(default_factory=set)
    items: Kinds | None = None
    fields: dict[str, Kinds] | None = None

    def add(self, value: object) -> None:
        match value:
            case None:
                pass
            case bool():
                self.plain.add("bool")
            case int():
                self.plain.add("int" if abs(value) <= EXACT else "big")
            case float():
                self.plain.add("float")
            case str():
                self.plain.add("text")
            case list():
                self.items = self.items or Kinds()
                for item in value:
                    self.items.add(item)
            case dict():
                for name, inner in value.items():
                    self._field(name).add(inner)
                self._bound()

    def merge(self, other: Kinds) -> None:
        self.plain |= other.plain
        if other.items is not None:
            self.items = self.items or Kinds()
            self.items.merge(other.items)
        if other.fields is not None:
            for name, inner in other.fields.items():
                self._field(name).merge(inner)
            self._bound()

    def _field(self, name: str) -> Kinds:
        self.fields = {} if self.fields is None else self.fields
        return self.fields.setdefault(name, Kinds())

    def _bound(self) -> None:
        self.fields = {} if self.fields is None else self.fields
        if len(self.fields) > MOST_FIELDS or "many" in self.plain:
            self.plain.add("many")
            self.fields = {}

    def to_json(self) -> str:
        return json.dumps(self._as_list(), separators=(",", ":"))

    def _as_list(self) -> list[Any]:
        fields = self.fields
        return [
            sorted(self.plain),
            self.items and self.items._as_list(),
            fields if fields is None else {name: inner._as_list() for name, inner in fields.items()},
        ]

    @staticmethod
    def from_json(text: str) -> Kinds:
        return _from_list(json.loads(text))


def _from_list(found: list[Any]) -> Kinds:
    plain, items, fields = found
    return Kinds(
        set(plain),
        items and _from_list(items),
        fields if fields is None else {name: _from_list(inner) for name, inner in fields.items()},
    )
