"""Who a request is from, as far as the service tells callers apart."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One of the parties that share a replica.

    Attributes:
        name: from the settings, never from the wire.
        cache_salt: parts its prefix-cache blocks from everybody else's; None: nobody else is served.
    """

    name: str
    cache_salt: str | None


# Where no key is asked for, all callers are one.
ANYBODY = Tenant(name="anybody", cache_salt=None)


def make_tenant(name: str, secret: bytes) -> Tenant:
    """A tenant whose salt nobody can guess who does not know the secret.

    Always 32 hexadecimal digits: a salt from the wire could not only be guessed, but has ended an engine
    (CVE-2026-105756).
    """
    return Tenant(name=name, cache_salt=hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()[:32])
