"""The contract between the service and an engine: types only, importable without vLLM or torch.

The service knows rubrics and probabilities, an engine knows token ids and logprobs. This module is all they share.

    EngineError
    ├── EngineStartFailed   the engine could not be brought up; the message says what to do
    ├── EngineDied          the engine is gone; nothing more will be answered
    └── ReadFailed          this one read failed, the engine lives on
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
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
class Branch:
    """One canvas to read, behind the shared prompt and a causal suffix of its own. Branches do not see each other.

    Attributes:
        canvas_token_ids: template tokens, with noise at the slots.
        canvas_slots: what to report, in canvas order.
        suffix_token_ids: run in causal encoder mode between the shared prompt and the canvas; may be empty.
    """

    canvas_token_ids: tuple[int, ...]
    canvas_slots: tuple[CanvasSlot, ...]
    suffix_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.canvas_slots:
            raise ValueError("a branch needs at least one slot; this is a bug")
        positions = [slot.position for slot in self.canvas_slots]
        if any(not 0 <= position < len(self.canvas_token_ids) for position in positions):
            raise ValueError("a slot lies outside its canvas; this is a bug")
        if positions != sorted(set(positions)):
            raise ValueError("slots are not in canvas order; this is a bug")
        if len(self.label_token_ids) > MAX_LABELS_PER_READ:
            raise ValueError(f"a canvas carries at most {MAX_LABELS_PER_READ} labels; this is a bug")

    @property
    def label_token_ids(self) -> frozenset[int]:
        """Every label of every slot."""
        return frozenset(label for slot in self.canvas_slots for label in slot.label_token_ids)

    def without_suffix(self) -> Branch:
        """The same canvas right behind the prompt."""
        return replace(self, suffix_token_ids=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """One denoising step over each of several canvases that share a prompt.

    Attributes:
        request_id: ours, unique while the reads run; never taken from the wire.
        prompt_token_ids: the shared prompt, run in causal encoder mode.
        branches: what is read; each as if it were a request of its own.
        is_constrained: logprobs are normalised over the labels that travel together; False: over the whole vocabulary.
        cache_salt: requests with different salts share nothing in the prefix cache.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    branches: tuple[Branch, ...]
    is_constrained: bool = True
    cache_salt: str | None = None

    def __post_init__(self) -> None:
        if not self.prompt_token_ids or not self.branches:
            raise ValueError("a read needs a prompt and at least one branch; this is a bug")


class Fallback(StrEnum):
    """Why a read that was to be fused took two engine steps after all."""

    BUDGET = "budget"
    CONTEXT = "context"
    BLOCKS = "blocks"
    INELIGIBLE = "ineligible"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStep:
    """One engine step that reads took part in.

    Attributes:
        index: the engine's running count of steps, from 1.
        seconds: wall time between the plan and the result of that step, shared by all reads in it.
    """

    index: int
    seconds: float


# Per slot, the natural-log probability of each of its labels, in the request's order.
SlotLogprobs = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """What the engine observed at the slots of a request's branches, and what it cost.

    Attributes:
        branch_logprobs: one set of slot logprobs per branch, in the request's order; what they are normalised over,
            see `ReadRequest.is_constrained`, is never the slot's own labels alone.
        fused_reads: branches whose prompt and canvas ran in one engine step.
        fallbacks: why others did not, one entry a branch; empty where fused reads are off.
        prompt_tokens: prompts and suffixes; a prompt counts as often as the engine was given it.
        cached_tokens: of these, what the prefix cache spared.
        canvas_tokens: widths of the canvases.
        engine_steps: the steps these reads took part in, in order.
        queue_seconds: time in the engine's queue before the first step.
    """

    branch_logprobs: tuple[SlotLogprobs, ...]
    fused_reads: int
    fallbacks: tuple[Fallback, ...]
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
        bundle_tokens: widest bundle behind its shared prompt, in tokens; 0 where reads are not fused.
        max_model_len: prompt plus canvas or bundle, in tokens.
        cpu_features: the instruction sets that decide which kernels run.
    """

    model: str
    revision: str
    checkpoint_digest: str
    vocabulary_size: int
    dtype: str
    fused_reads: bool
    canvas_length: int
    bundle_tokens: int
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
        """Read every branch, in one engine step where it can be.

        Raises:
            ReadFailed: a read failed.
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
