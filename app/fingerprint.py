"""Which decision function answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from app.canvas.policy import POLICY_VERSION
from app.canvas.prompt import PROMPT_LAYOUT_VERSION
from app.canvas.question import Kind
from engine.protocol import EngineInfo

# What can move a logprob or a token. The canvas's length decides which questions share one. The
# model's name and the engine's other limits cannot.
DECIDING_FIELDS = (
    "checkpoint_digest",
    "revision",
    "vllm_version",
    "torch_version",
    "plugin_version",
    "dtype",
    "cpu_features",
    "threads",
    "fused_reads",
    "canvas_length",
)


def fingerprint(info: EngineInfo, temperatures: Mapping[Kind, float]) -> str:
    """A hash of everything that decides an answer: two answers with one fingerprint come from one decision function."""
    parts = {name: value for name, value in asdict(info).items() if name in DECIDING_FIELDS}
    parts["prompt_layout_version"] = PROMPT_LAYOUT_VERSION
    parts["policy_version"] = POLICY_VERSION
    parts["temperatures"] = {kind: temperature for kind, temperature in temperatures.items() if temperature != 1}
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
