"""A result of a benchmark: a ratio, the figures behind it, and the bound that it must keep, if any."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Figure = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Result:
    bench: str
    case: str
    """What was measured, in a few words; with `bench` it names the result."""
    ratio: float
    told: str
    """The figures for people."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The figures for machines."""
    most: float | None = None
    """The ratio must not be above this."""

    @property
    def missed(self) -> bool:
        return self.most is not None and not self.ratio <= self.most

    def line(self) -> str:
        """One line of JSON."""
        found: dict[str, Figure] = {"bench": self.bench, "case": self.case, "ratio": shown(self.ratio)}
        if self.most is not None:
            found["most"] = self.most
        found.update((name, shown(value)) for name, value in self.figures.items())
        return json.dumps(found, ensure_ascii=False)

    def words(self) -> str:
        bound = "" if self.most is None else f" (at most {self.most:g})"
        return f"{self.bench:9}  {self.case:34}  ratio {self.ratio:7.3f}{bound}  {self.told}"

    def complaint(self) -> str:
        """The sentence that says which bound was missed."""
        return (
            f"missed: {self.bench}, {self.case}: the ratio is {self.ratio:.3f}, and at most {self.most:g} is "
            "required"
        )


Benchmark = Callable[[bool], Iterable[Result]]
"""Given whether it shall be quick, gives its results as they come."""


class Spoilt(Exception):
    """What was measured did not do what it should, so its figures mean nothing."""


def shown(value: Figure) -> Figure:
    """Four significant digits or more: a machine's noise is not printed."""
    if isinstance(value, float):
        return round(value, 4) if abs(value) < 1000 else round(value)
    return value
