"""The contract between the service and an engine: types only, importable without vLLM or torch.

The service knows rubrics and probabilities, an engine knows token ids and logprobs. This module is all they share.

    EngineError
    ├── EngineStartFailed   the engine could not be brought up; the message says what to do
    ├── EngineDied          the engine is gone; nothing more will be answered
    └── ReadFailed          this one read failed, the engine lives on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# vLLM's own cap on `SamplingParams.logprob_token_ids` (vllm/sampling_params.py, MAX_LOGPROB_TOKEN_IDS).
MAX_LABELS_PER_READ = 128


class EngineError(Exception):
    """Base of everything an engine raises on purpose."""


class EngineStartFailed(EngineError):
    """The engine could not be brought up."""


class EngineDied(EngineError):
    """The engine's processes are gone."""


class ReadFailed(EngineError):
    """One read failed; later reads may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasSlot:
    """One open position of a canvas and the token ids it may take.

    Attributes:
        position: index into the canvas, in tokens.
        label_token_ids: the admissible token ids, in the order the logprobs come back.
    """

    position: int
    label_token_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.label_token_ids)) != len(self.label_token_ids) or not self.label_token_ids:
            raise ValueError("a slot needs distinct label token ids, at least one; this is a bug")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """One denoising step over one canvas after one prompt.

    Attributes:
        request_id: ours, unique while the read runs; never taken from the wire.
        prompt_token_ids: the prompt, run in causal encoder mode.
        canvas_token_ids: template tokens, with noise at the slots.
        canvas_slots: what to report, in canvas order.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    canvas_token_ids: tuple[int, ...]
    canvas_slots: tuple[CanvasSlot, ...]

    def __post_init__(self) -> None:
        if not self.prompt_token_ids or not self.canvas_slots:
            raise ValueError("a read needs a prompt and at least one slot; this is a bug")
        if any(not 0 <= slot.position < len(self.canvas_token_ids) for slot in self.canvas_slots):
            raise ValueError("a slot lies outside its canvas; this is a bug")
        if len(self.label_token_ids) > MAX_LABELS_PER_READ:
            raise ValueError(f"a read carries at most {MAX_LABELS_PER_READ} labels; this is a bug")

    @property
    def label_token_ids(self) -> tuple[int, ...]:
        """Every label of every slot once, ascending, so that equal sets compare equal across reads."""
        return tuple(sorted({label for slot in self.canvas_slots for label in slot.label_token_ids}))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStep:
    """One engine step a read took part in.

    Attributes:
        index: the engine's running count of steps, from 1.
        seconds: wall time between the plan and the result of that step, shared by all reads in it.
    """

    index: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """What the engine observed at the slots of one read.

    Attributes:
        slot_logprobs: per slot, the natural-log probability of each of its labels, in the request's order.
            Normalised over the labels of the whole read, not over the slot's own.
        prompt_tokens: length of the prompt.
        cached_tokens: prompt tokens that the prefix cache spared.
        canvas_tokens: width of the canvas.
        engine_steps: the steps this read took part in.
        queue_seconds: time in the engine's queue before the first step.
    """

    slot_logprobs: tuple[tuple[float, ...], ...]
    prompt_tokens: int
    cached_tokens: int
    canvas_tokens: int
    engine_steps: tuple[EngineStep, ...]
    queue_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What a running engine is, for `/health` and the fingerprint.

    Attributes:
        checkpoint_digest: see `engine.checkpoint.checkpoint_digest`.
        vocabulary_size: token ids are below it.
        canvas_length: widest canvas the engine reads, in tokens.
        max_model_len: prompt plus canvas, in tokens.
        cpu_features: the instruction sets that decide which kernels run.
    """

    model: str
    revision: str
    checkpoint_digest: str
    vocabulary_size: int
    dtype: str
    fused_reads: bool
    canvas_length: int
    max_model_len: int
    vllm_version: str
    torch_version: str
    plugin_version: str
    cpu_features: tuple[str, ...]
    threads: int


class Engine(Protocol):
    """A model that reads canvases.

    One instance is started once and closed once. Cancelling the task that awaits `read` aborts that read in the engine.
    """

    async def start(self) -> EngineInfo:
        """Bring the engine up and warm every shape class, so that no later read stalls.

        Raises:
            EngineStartFailed: with what to do about it.
        """
        ...

    async def read(self, request: ReadRequest) -> ReadResult:
        """Run one read.

        Raises:
            ReadFailed: this read failed.
            EngineDied: the engine is gone.
        """
        ...

    async def check(self) -> None:
        """Return if the engine can read.

        Raises:
            EngineDied: it cannot, and will not again.
        """
        ...

    async def close(self) -> None:
        """Stop the engine and everything it started. Safe to call in any state, any number of times."""
        ...
