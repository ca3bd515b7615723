"""YAML and JSON files that people write, read as plain values only; safe for untrusted files."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from causet.errors import BadInput, quote, reason

MOST_BYTES = 16 * 1024 * 1024
"""The largest file that is read."""
DEEPEST = 16
"""How deep the lists and mappings of a file may be nested; libyaml's loader overflows its stack otherwise."""


def load_plain(path: str | Path) -> object:
    """What a YAML file, or with the ending .json a JSON file, holds: plain values only.

    Safe for untrusted files: no YAML tags, no aliases (a few lines of them can stand for terabytes),
    bounded size and depth. Duplicate keys are refused instead of half ignored.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {reason(error)}") from None
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{path}: larger than {MOST_BYTES // 1024**2} MiB, the most that is read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}, line {line}: not UTF-8 text") from None
    try:
        return _load_json(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        raise BadInput(f"{where}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply") from None
    except BadInput as error:
        raise BadInput(f"{path}{error}") from None
    except ValueError:
        # A number of thousands of digits, a 13th month: well-formed, but not a value.
        raise BadInput(f"{path}: it has an invalid number or date; put text in quotes") from None


def _load_json(text: str) -> object:
    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in found]
        if len(set(keys)) < len(keys):
            raise BadInput(
                f": the key {quote(next(key for key, _ in found if keys.count(key) > 1))} appears twice"
            )
        return dict(found)

    return json.loads(text, object_pairs_hook=pairs)


def load_yaml(text: str) -> object:
    """The value of a YAML string; BadInput for what is not allowed, the parser's own error for bad YAML."""
    # libyaml's loader is seven times as fast; pyyaml may have been built without it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _check_yaml(text, loader)
    value: object = yaml.load(text, Loader=loader)
    return value


def _check_yaml(text: str, loader: type[yaml.SafeLoader]) -> None:
    """Refuse aliases, tags, repeated keys and deep nesting before the loader sees them.

    It recurses, and trips over tags that their values do not match.
    """
    keys: list[set[str] | None] = []  # per open collection: the keys so far; None in a list
    key_next: list[bool] = []
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise BadInput(f", line {line}: an alias (*) is not allowed; write the value out")
        if isinstance(event, yaml.CollectionEndEvent):
            keys.pop()
            key_next.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise BadInput(f", line {line}: the tag {quote(event.tag)} is not allowed; give plain values")
        seen = keys[-1] if keys else None
        if seen is not None:
            if key_next[-1] and isinstance(event, yaml.ScalarEvent):
                if event.value in seen:
                    raise BadInput(f", line {line}: the key {quote(event.value)} appears twice")
                seen.add(event.value)
            key_next[-1] = not key_next[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            keys.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
            key_next.append(True)
            if len(keys) > DEEPEST:
                raise BadInput(f", line {line}: nested too deeply, at most {DEEPEST} levels are read")
