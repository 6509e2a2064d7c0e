"""Ids of requests: ours, never the caller's, so that nothing of a request is in them and no two are the same."""

from __future__ import annotations

import secrets


def new_request_id() -> str:
    """An id that no other request has had."""
    return f"req_{secrets.token_hex(12)}"
