"""The fingerprint: one decision function, one value."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from app.canvas.question import Kind
from app.fingerprint import fingerprint
from engine.protocol import EngineInfo

INFO = EngineInfo(
    model="m",
    revision="r",
    checkpoint_digest="c",
    vocabulary_size=2048,
    dtype="float32",
    fused_reads=False,
    canvas_length=64,
    bundle_tokens=2048,
    max_model_len=4096,
    vllm_version="1",
    torch_version="2",
    plugin_version="3",
    cpu_features=("avx2",),
    threads=2,
)
OTHER: dict[str, Any] = {
    "revision": "r2",
    "checkpoint_digest": "c2",
    "dtype": "bfloat16",
    "fused_reads": True,
    "canvas_length": 65,  # how many questions share a canvas
    "vllm_version": "1.1",
    "torch_version": "2.1",
    "plugin_version": "3.1",
    "cpu_features": ("avx2", "amx"),
    "threads": 3,
}
NOT_DECIDING: dict[str, Any] = {
    "model": "m2",
    "vocabulary_size": 2049,
    "bundle_tokens": 2049,
    "max_model_len": 4097,
}


def test_every_field_is_considered() -> None:
    """A new fact about an engine has to be put on one side or the other."""
    assert OTHER.keys() | NOT_DECIDING.keys() == {field.name for field in fields(EngineInfo)}


@pytest.mark.parametrize("name", OTHER)
def test_what_can_move_an_answer_is_in(name: str) -> None:
    """Two answers with one fingerprint come from the same decision function."""
    assert fingerprint(replace(INFO, **{name: OTHER[name]}), {}) != fingerprint(INFO, {})


@pytest.mark.parametrize("name", NOT_DECIDING)
def test_what_cannot_is_out(name: str) -> None:
    """The same function under another name or other limits keeps its fingerprint."""
    assert fingerprint(replace(INFO, **{name: NOT_DECIDING[name]}), {}) == fingerprint(INFO, {})


def test_the_layout_of_prompts_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt written differently is another function."""
    before = fingerprint(INFO, {})
    monkeypatch.setattr("app.fingerprint.PROMPT_LAYOUT_VERSION", -1)
    assert fingerprint(INFO, {}) != before


def test_temperatures_are_in() -> None:
    """They decide what is uncertain; a kind that has 1 is as one that has none."""
    assert fingerprint(INFO, {Kind.CHOICE: 1.5}) not in (fingerprint(INFO, {}), fingerprint(INFO, {Kind.SCORE: 1.5}))
    assert fingerprint(INFO, {Kind.CHOICE: 1.0}) == fingerprint(INFO, {})


def test_form() -> None:
    """The algorithm's name and 256 bits; a value moves to no other field."""
    assert re.fullmatch("sha256:[0-9a-f]{64}", fingerprint(INFO, {}))
    assert fingerprint(replace(INFO, vllm_version="2", torch_version="1"), {}) != fingerprint(INFO, {})
