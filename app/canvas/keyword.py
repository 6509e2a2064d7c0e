"""The keywords of JSON Schema that cannot be skipped."""

from __future__ import annotations

# Every keyword of drafts 3 to 2020-12 that can make an instance invalid, or that pulls in another schema.
CONSTRAINING = frozenset(["$ref"])
