"""What the scheduler tells the front end about one engine request, beside vLLM's own output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.protocol import EngineStep, Fallback


@dataclass(slots=True, kw_only=True)
class EngineReport:
    """What a request went through.

    Attributes:
        steps: index and duration in seconds of every engine step it took part in.
        is_fused: its canvas ran in the step that finished its prompt.
        fallback: why not, where reads are fused.
        block_tokens: the scheduler's block size: a multiple of every KV block's.
    """

    block_tokens: int
    steps: list[tuple[int, float]] = field(default_factory=list)
    is_fused: bool = False
    fallback: Fallback | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> EngineReport:
        """What has arrived."""
        fallback = params["fallback"]
        return cls(**{**params, "fallback": None if fallback is None else Fallback(fallback)})

    def as_params(self) -> dict[str, Any]:
        """It travels in `EngineCoreOutput.kv_transfer_params`, a plain dictionary that is passed on as it is."""
        return asdict(self)

    def engine_steps(self) -> tuple[EngineStep, ...]:
        """The steps in the protocol's terms."""
        return tuple(EngineStep(index=index, seconds=seconds) for index, seconds in self.steps)
