"""Keys and tenants."""

from __future__ import annotations

import hashlib
import re

import pytest

from app.access import SHORTEST_KEY_CHARS, Access, ApiKey
from app.tenant import make_tenant
from tests.app.canary import CANARY

KEYS = {name: f"{name}-{'k' * SHORTEST_KEY_CHARS}" for name in ("first", "second", "third")}


def access() -> Access:
    """Two tenants, one of them with two keys."""
    texts = (f"clinic:{KEYS['first']}", f"clinic:{KEYS['second']}", f"pharmacy:{KEYS['third']}")
    return Access(map(ApiKey.parse, texts))


def test_whose_a_key_is() -> None:
    """S2: several keys of one tenant are one tenant's, so that one can be replaced."""
    found = [access().tenant_of(key.encode()) for key in KEYS.values()]
    assert [tenant.name if tenant else None for tenant in found] == ["clinic", "clinic", "pharmacy"]


@pytest.mark.parametrize(
    "key",
    ["", "x" * 40, KEYS["first"] + " ", KEYS["first"][:-1], KEYS["first"].upper(), f"clinic:{KEYS['first']}", "é\x00"],
)
def test_nobodys_key(key: str) -> None:
    """S2: no prefix, no other case, not the entry of the setting, and nothing at all is not a key either."""
    assert access().tenant_of(key.encode()) is None


def test_every_key_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: how long it takes does not tell which key it was, or how much of one was right."""
    seen: list[bytes] = []

    def compare(known: bytes, given: bytes) -> bool:
        seen.append(known)
        return known == given

    monkeypatch.setattr("app.access.secrets.compare_digest", compare)
    asked = access()
    for key in (KEYS["first"], "x" * 40):
        seen.clear()
        asked.tenant_of(key.encode())
        assert seen == [hashlib.sha256(known.encode()).digest() for known in KEYS.values()]


def test_a_key_as_a_digest() -> None:
    """The environment may hold what a key hashes to; the digest itself opens nothing."""
    digest = hashlib.sha256(KEYS["first"].encode()).hexdigest()
    asked = Access([ApiKey.parse(f"clinic:sha256:{digest}")])
    assert asked.tenant_of(KEYS["first"].encode())
    assert asked.tenant_of(digest.encode()) is None
    assert asked.tenant_of(f"sha256:{digest}".encode()) is None


def test_a_digest_of_a_short_key_opens_nothing() -> None:
    """S2: no length is asked of a key that settings do not show, so it is asked of what is sent."""
    for key in ("k", "k" * (SHORTEST_KEY_CHARS - 1)):
        asked = Access([ApiKey.parse(f"clinic:sha256:{hashlib.sha256(key.encode()).hexdigest()}")])
        assert asked.tenant_of(key.encode()) is None


def test_a_key_is_not_kept() -> None:
    """P1: neither it nor part of it, wherever settings are shown."""
    assert KEYS["first"] not in repr(ApiKey.parse(f"clinic:{KEYS['first']}"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clinic",
        "clinic:",
        f"clinic:{'k' * (SHORTEST_KEY_CHARS - 1)}",
        f":{'k' * 40}",
        "k" * 40,
        f"Clinic:{'k' * 40}",
        f"a clinic:{'k' * 40}",
        f"{'c' * 33}:{'k' * 40}",
        f"clinic:{'k' * 40} k",
        f"clinic:{'é' * 40}",
        f"clinic:sha256:{'0' * 63}",
        f"clinic:sha256:{'G' * 64}",
        f"clinic:sha256:{CANARY}",
        f"clinic:sha256:{hashlib.sha256(b'').hexdigest()}",
    ],
)
def test_what_is_no_key(text: str) -> None:
    """S2: empty and short ones, tenants without a name, digests that are none."""
    with pytest.raises(ValueError, match=r"^$"):
        ApiKey.parse(text)


def test_no_keys_is_open() -> None:
    """For loopback."""
    assert Access([]).is_open
    assert not access().is_open


def test_salts() -> None:
    """S3, S4: one a tenant, of a fixed alphabet, another in every process, and never its name."""
    tenants = [access().tenant_of(key.encode()) for key in KEYS.values()]
    assert all(tenant and re.fullmatch("[0-9a-f]{32}", tenant.cache_salt or "") for tenant in tenants)
    salts = [make_tenant(name, secret).cache_salt for name in ("a", "b") for secret in (b"1", b"2")]
    assert len(set(salts)) == 4
    assert make_tenant("a", b"1") == make_tenant("a", b"1")
    one = access()
    first, second, third = (one.tenant_of(key.encode()) for key in KEYS.values())
    assert first == second
    assert first
    assert third
    assert first.cache_salt != third.cache_salt
