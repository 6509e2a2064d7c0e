"""JSON values as types, JSON Pointers, and the text of values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonScalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = "JsonScalar | Sequence[Json] | Mapping[str, Json]"

# A key of a rubric stands in pointers. Past this it is cut, so that an answer stays small whatever was sent: such a
# pointer shows where to look, but does not resolve.
MAX_POINTER_KEY_CHARS = 256


def pointer(*keys: str | int) -> str:
    """The JSON Pointer (RFC 6901) of a path, long keys cut."""
    return "".join(f"/{escape(_cut(str(key)))}" for key in keys)


def escape(key: str) -> str:
    """One reference token of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """What a reference token of a JSON Pointer says."""
    return token.replace("~1", "/").replace("~0", "~")


def _cut(key: str) -> str:
    return key if len(key) <= MAX_POINTER_KEY_CHARS else key[:MAX_POINTER_KEY_CHARS] + "…"


def identity(value: JsonScalar) -> tuple[bool, JsonScalar]:
    """Equal for two scalars exactly when JSON Schema calls them equal: 1 is 1.0, and true is not 1."""
    return isinstance(value, bool), value


def to_text(value: Json) -> str:
    """A string as it is, anything else as compact JSON with its keys in the order they came."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), allow_nan=False)


def count_values(value: Json, most: int) -> int:
    """How many values a value holds, itself included. Counted no further than a little past `most`."""
    stack, count = [value], 0
    while stack and count <= most:
        count += 1
        held = stack.pop()
        if isinstance(held, Mapping):
            stack.extend(held.values())
        elif isinstance(held, Sequence) and not isinstance(held, str):
            stack.extend(held)
    return count


def one_line(text: str) -> str:
    """Text with every run of white space made one space, so that it cannot look like another line of the prompt."""
    return " ".join(text.split())


def sentences(*parts: str) -> str:
    """Texts as sentences of one, without a full stop at its end; empty ones are left out."""
    said = ""
    for part in (part.rstrip(".") for part in parts):
        gap = "" if not said or not part else " " if said[-1] in "?!:" else ". "
        said += gap + part
    return said
