"""JSON Pointers (RFC 6901), followed by the tests themselves."""

from __future__ import annotations

from typing import Any


def follow(document: Any, pointer: str) -> Any:
    """What a pointer leads to in a document.

    Raises:
        LookupError: it leads nowhere.
    """
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        document = document[_index(key) if isinstance(document, list) else key]
    return document


def _index(key: str) -> int:
    if key.isdecimal():
        return int(key)
    raise LookupError(key)
