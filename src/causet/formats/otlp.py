"""OpenTelemetry spans in OTLP JSON, as a trace: two events per span.

A file holds one ExportTraceServiceRequest (resourceSpans, scopeSpans, spans), an array of them, or JSON Lines
of them, as the collector's file exporter writes. A span becomes the events `trace.span:s` and `trace.span:e`,
its start and its end. The start of a span comes after the start of its parent, and after the start of each
span to which it links. All files together are one execution.

What a process is has to be assumed; `process` says how much:

- `request` (default): what one service instance does for one trace id, in the order of its clock;
- `service`: all that a service instance does: it orders the most, and wrongly so where requests are
  concurrent inside of it, or instances that have no `service.instance.id` share a name;
- `span`: nothing beside each span's own start and end.

Rule: within a process events stand by time, starts before ends, outer starts before inner ones and outer
ends after inner ones; and never against an ancestor in the same process, whatever its clock showed. Times are
kept as they are, in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from causet.errors import BadInput, Problem, quote
from causet.files import Place
from causet.formats.documents import documents
from causet.formats.execution import ENDS_FIRST, NO_END, TWICE, Execution, FaultLog, assemble, other_processes
from causet.formats.strict import INT64, is_integer
from causet.model import Event

Process = Literal["request", "service", "span"]
KINDS = ("", "internal", "server", "client", "producer", "consumer")
STATUSES = ("", "ok", "error")


def read_otlp(paths: Iterable[str | Path], *, process: str = "request") -> Execution:
    """The spans of these files as one execution.

    Bad input: what is not of the OTLP shape, a span without ids or a start time, two different spans with
    the same ids, a cycle. Log faults: a missing parent or linked span, a span without an end or with an end
    before its start, a duplicate span.
    """
    if process not in get_args(Process):
        raise BadInput(f"process {quote(process)}: for spans it is one of {', '.join(get_args(Process))}")
    faults = FaultLog()
    spans: dict[str, _Span] = {}
    for path in paths:
        for place, document in documents(Path(path)):
            try:
                for span in _spans(place, document, process):
                    known = spans.setdefault(span.id, span)
                    if known is span:
                        continue
                    if known.raw != span.raw:
                        raise Problem(f"another span with the ids {quote(span.id)} is in {known.place}")
                    faults.add(TWICE, place, f"the span {quote(span.id)}, already in {known.place}")
            except Problem as error:
                raise BadInput(f"{place}: {error}") from None
    for span in spans.values():
        if not span.end:
            faults.add(NO_END, span.place, quote(span.id))
        elif span.end < span.start:
            faults.add(ENDS_FIRST, span.place, quote(span.id))
    return assemble(
        "", _events(spans), faults, hint="try --process request or --process span, which assume less"
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """One span, and where it stands; `end` is 0 if the log does not have it."""

    id: str
    place: Place
    process: str
    parent: str | None
    links: tuple[str, ...]
    name: str
    start: int
    end: int
    at_start: dict[str, object]
    at_end: dict[str, object]
    raw: dict[str, Any] = field(repr=False)


# ---------------------------------------------------------------- reading


def _spans(place: Place, document: object, process: str) -> Iterator[_Span]:
    if not isinstance(document, dict) or "resourceSpans" not in document:
        raise Problem('this is not an OTLP document, an object with the field "resourceSpans"')
    for resource in _objects(document, "resourceSpans"):
        service = _service(_attributes(_object(resource, "resource")))
        # The older name of scopeSpans is still found in files.
        for scope in [*_objects(resource, "scopeSpans"), *_objects(resource, "instrumentationLibrarySpans")]:
            for raw in _objects(scope, "spans"):
                yield _span(place, raw, service, process)


def _span(place: Place, raw: dict[str, Any], service: str, process: str) -> _Span:
    trace, own = _hex(raw, "traceId"), _hex(raw, "spanId")
    if not trace or not own:
        raise Problem(f"field {quote('spanId' if trace else 'traceId')} of a span is missing or zero")
    start = _nanos(raw, "startTimeUnixNano")
    if not start:
        raise Problem(f'field "startTimeUnixNano" of span {quote(own)} is missing or zero')
    parent = _hex(raw, "parentSpanId")
    links = []
    for link in _objects(raw, "links"):
        linked = _hex(link, "traceId") or trace, _hex(link, "spanId")
        if linked[1]:
            links.append(f"{linked[0]}.{linked[1]}")
    name = _text(raw, "name")
    kind = _enum(raw, "kind", "SPAN_KIND_", KINDS)
    at_start: dict[str, object] = {
        "name": name,
        "span_kind": kind,
        "service": service,
        **_named(raw, "attributes"),
    }
    at_end: dict[str, object] = {"name": name, **_status(_object(raw, "status")), **_span_events(raw)}
    return _Span(
        f"{trace}.{own}",
        place,
        {"request": f"{trace}@{service}", "service": service, "span": f"{trace}.{own}"}[process],
        f"{trace}.{parent}" if parent else None,
        tuple(dict.fromkeys(links)),
        name,
        start,
        _nanos(raw, "endTimeUnixNano"),
        {name: value for name, value in at_start.items() if value not in ("", {})},
        {name: value for name, value in at_end.items() if value not in ("", {}, [])},
        raw,
    )


def _named(raw: dict[str, Any], name: str) -> dict[str, object]:
    return {name: found} if (found := _attributes(raw)) else {}


def _status(status: dict[str, Any]) -> dict[str, object]:
    code, message = _enum(status, "code", "STATUS_CODE_", STATUSES), _text(status, "message")
    return {"status": f"{code}: {message}" if message else code}


def _span_events(raw: dict[str, Any]) -> dict[str, object]:
    """The span's own log: time, name and attributes of each of its events."""
    return {
        "span_events": [
            [
                _nanos(each, "timeUnixNano"),
                _text(each, "name"),
                *([found] if (found := _attributes(each)) else []),
            ]
            for each in _objects(raw, "events")
        ]
    }


def _service(attributes: dict[str, object]) -> str:
    """The service instance: namespace, name and instance, as far as they are known."""
    parts = [attributes.get(f"service.{part}") for part in ("namespace", "name", "instance.id")]
    return "/".join(str(part) for part in parts if part not in (None, "")) or "unknown"


def _attributes(holder: dict[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in _objects(holder, "attributes"):
        found[_text(each, "key")] = _value(_object(each, "value"))
    return found


def _value(value: dict[str, Any]) -> object:
    """The plain value in an AnyValue. The document's depth is bounded, and so is this."""
    for name, inner in value.items():
        if inner is None:
            continue
        match name:
            case "stringValue" | "boolValue" | "doubleValue" | "bytesValue":
                return inner
            case "intValue":
                return _int64(name, inner)
            case "arrayValue":
                return [_value(each) for each in _objects(_object(value, name), "values")]
            case "kvlistValue":
                pairs = _objects(_object(value, name), "values")
                return {_text(each, "key"): _value(_object(each, "value")) for each in pairs}
    return None


def _objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Problem(f"field {quote(name)} must be a list of objects")
    return found


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    found = holder.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Problem(f"field {quote(name)} must be an object, not {quote(found)}")
    return found


def _text(holder: dict[str, Any], name: str) -> str:
    found = holder.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Problem(f"field {quote(name)} must be a string, not {quote(found)}")
    return found


def _hex(holder: dict[str, Any], name: str) -> str:
    """An id in lower case; empty if it is missing or all zeros."""
    found = _text(holder, name).lower()
    return found if found.strip("0") else ""


def _int64(name: str, found: object) -> int:
    """A 64-bit integer, which OTLP writes as a string, and others often as a number."""
    if isinstance(found, str) and len(found) <= 20 and found.isascii() and found.removeprefix("-").isdigit():
        found = int(found)
    if not is_integer(found) or found not in INT64:
        raise Problem(f"field {quote(name)} must be a 64-bit integer, not {quote(found)}")
    return found


def _nanos(holder: dict[str, Any], name: str) -> int:
    found = holder.get(name)
    value = 0 if found is None else _int64(name, found)
    if value < 0:
        raise Problem(f"field {quote(name)} must be a time since 1970, not {quote(found)}")
    return value


def _enum(holder: dict[str, Any], name: str, prefix: str, names: tuple[str, ...]) -> str:
    """A value of an enum, which JSON has as its number or as its name."""
    found = holder.get(name)
    if found is None:
        return ""
    if isinstance(found, str):
        word = found.removeprefix(prefix).lower()
        return "" if word in ("unspecified", "unset") else word
    if not is_integer(found):
        raise Problem(f"field {quote(name)} must be a number, not {quote(found)}")
    return names[found] if 0 <= found < len(names) else str(found)


# ---------------------------------------------------------------- events


def _events(spans: dict[str, _Span]) -> Iterator[tuple[Place, Event]]:
    """Start and end of each span, in the order of the files."""
    seqs = _seqs(spans)
    where = {f"{span.id}:s": (span.process, seqs[f"{span.id}:s"]) for span in spans.values()}
    for span in spans.values():
        own = seqs[f"{span.id}:s"]
        causes = [f"{cause}:s" for cause in (span.parent, *span.links) if cause]
        yield (
            span.place,
            Event(
                span.process,
                own,
                id=f"{span.id}:s",
                parents=other_processes(span.process, own, causes, where),
                time=span.start,
                text=f"start {span.name}",
                extra=span.at_start,
            ),
        )
        if span.end:
            yield (
                span.place,
                Event(
                    span.process,
                    seqs[f"{span.id}:e"],
                    id=f"{span.id}:e",
                    time=span.end,
                    text=f"end {span.name}",
                    extra=span.at_end,
                ),
            )


def _seqs(spans: dict[str, _Span]) -> dict[str, int]:
    """The position of each event within its process."""
    by_process: dict[str, list[tuple[int, int, int, str]]] = {}
    for span, depth, start in _nested(spans):
        found = by_process.setdefault(span.process, [])
        found.append((start, 0, depth, f"{span.id}:s"))
        if span.end:
            found.append((max(span.end, start), 1, -depth, f"{span.id}:e"))
    seqs = {}
    for found in by_process.values():
        for seq, (*_, event) in enumerate(sorted(found), start=1):
            seqs[event] = seq
    return seqs


def _nested(spans: dict[str, _Span]) -> Iterator[tuple[_Span, int, int]]:
    """Each span with its depth and a start that is not before that of an ancestor in the same process.

    A walk down from the roots, without recursion: calls may be nested deeply.
    """
    children: dict[str, list[str]] = {}
    roots = []
    for span in spans.values():
        if span.parent in spans and span.parent is not None:
            children.setdefault(span.parent, []).append(span.id)
        else:
            roots.append(span.id)
    seen = 0
    begun: dict[str, list[int]] = {}  # per process, the starts of the open ancestors in it
    todo = [(root, 0, True) for root in reversed(roots)]
    while todo:
        name, depth, down = todo.pop()
        span = spans[name]
        open_here = begun.setdefault(span.process, [])
        if not down:
            open_here.pop()
            continue
        seen += 1
        open_here.append(max(span.start, open_here[-1]) if open_here else span.start)
        yield span, depth, open_here[-1]
        todo.append((name, depth, False))
        todo += [(child, depth + 1, True) for child in reversed(children.get(name, []))]
    if seen < len(spans):
        raise BadInput(_circle(spans))


def _circle(spans: dict[str, _Span]) -> str:
    """The sentence for spans that are each other's ancestors; there are some."""
    reached: set[str] = set()
    for start in spans:
        path: dict[str, None] = {}
        name: str | None = start
        while name is not None and name in spans and name not in reached and name not in path:
            path[name] = None
            name = spans[name].parent
        if name in path:
            circle = [*list(path)[list(path).index(name or "") :], name or ""][::-1]
            if len(circle) > 8:
                circle[4:-3] = [f"… {len(circle) - 7} more …"]
            place = spans[start].place
            return f"{place}: the spans are each other's parents, which is a cycle: {' → '.join(circle)}"
        reached |= path.keys()
    raise AssertionError("no circle")
