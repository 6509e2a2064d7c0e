"""API keys: who may ask, and as whom.

A setting lists them as `tenant:key`, separated by commas; a tenant may have several, so that one can be replaced while
both work. A key may be given as `sha256:` and its digest, so that the environment holds no secret.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from app.tenant import Tenant, make_tenant

SHORTEST_KEY_CHARS, MOST_KEYS = 32, 256

# The digest of no key at all: what a shell makes of a variable that is not set.
NOTHING = hashlib.sha256(b"").digest()

_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[!-+\--~]+")  # visible ASCII but the comma


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """One key: its SHA-256, never itself, and whose it is."""

    digest: bytes
    tenant: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """A key as settings spell it.

        Raises:
            ValueError: it is not `tenant:key`, or too short a key to be one.
        """
        tenant, _, key = text.strip().partition(":")
        kind, _, digest = key.partition(":")
        is_digest = kind == "sha256" and _DIGEST.fullmatch(digest)
        if not _TENANT_NAME.fullmatch(tenant) or not (is_digest or _is_key(key)):
            raise ValueError
        made = cls(tenant=tenant, digest=bytes.fromhex(digest) if is_digest else _digest(key.encode()))
        if made.digest == NOTHING:
            raise ValueError
        return made


class Access:
    """Tells whose a key is."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = tuple(keys)
        # New in every process, as the cache it guards is.
        secret = secrets.token_bytes(32)
        self._tenants = {key.tenant: make_tenant(key.tenant, secret) for key in self._keys}

    @property
    def is_open(self) -> bool:
        """Whether no key is asked for."""
        return not self._keys

    def tenant_of(self, key: bytes) -> Tenant | None:
        """Whose key this is, None if nobody's.

        Takes as long for any: digests are compared, in constant time each, and always all of them. A digest in the
        settings does not make a key good that is too short to be one.
        """
        digest = _digest(key)
        found: Tenant | None = None
        for known in self._keys:
            if secrets.compare_digest(known.digest, digest):
                found = self._tenants[known.tenant]
        return found if len(key) >= SHORTEST_KEY_CHARS else None


def _is_key(key: str) -> bool:
    return len(key) >= SHORTEST_KEY_CHARS and not key.startswith("sha256:") and bool(_KEY.fullmatch(key))


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
