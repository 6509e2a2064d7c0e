"""When a read may run prompt and canvas in one engine step: rules, no vLLM.

vLLM runs a read in two steps, the prompt and then the canvas. The canvas does not depend on what the first step
computes on the host, so one is enough, provided that the read is of the right kind and both fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.protocol import Fallback

# The keys of ours in `SamplingParams.extra_args`, beside vLLM's: the shapes of the branches of a draft, the offsets of
# its slots, and what the layout calls `block_tokens`.
BRANCHES, SLOTS, BLOCK_TOKENS = "onestep_branches", "onestep_slots", "onestep_block_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A request whose prompt is finished by the step being planned.

    Attributes:
        extra_args: what came with it (vllm/utils/diffusion.py).
        wants_prompt_logprobs: they are computed from the same rows of logits.
        sequence_tokens: prompt and draft.
        draft_tokens: width of the draft: a canvas, or the branches of a bundle.
    """

    extra_args: Mapping[str, Any]
    wants_prompt_logprobs: bool
    sequence_tokens: int
    draft_tokens: int


def extra_args_of(params: Any) -> Mapping[str, Any]:
    """What came with a request's `SamplingParams`, which it may have none of."""
    return (params and params.extra_args) or {}


def is_single_step_read(extra_args: Mapping[str, Any]) -> bool:
    """Whether a request reads a canvas of its own once and writes nothing: it is known before the prompt ran."""
    return (
        bool(extra_args.get("diffusion_read_only"))
        and extra_args.get("diffusion_max_steps") == 1
        and bool(extra_args.get("diffusion_seed_canvas"))
    )


def fallback_reason(candidate: Candidate, *, budget_tokens: int, max_model_len: int) -> Fallback | None:
    """Why a request keeps vLLM's two steps, or None if it can be fused as far as tokens go.

    Args:
        budget_tokens: what the step being planned has left.
        max_model_len: prompt plus draft.
    """
    if not is_single_step_read(candidate.extra_args) or candidate.wants_prompt_logprobs:
        return Fallback.INELIGIBLE
    if candidate.sequence_tokens > max_model_len:
        return Fallback.CONTEXT
    if candidate.draft_tokens > budget_tokens:
        return Fallback.BUDGET
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a request wants of the next step.

    Attributes:
        tokens: the rest of its prompt, as much of it as there is room; or, if it is a draft, all of it.
        fused_tokens: the draft that would follow its prompt in the same step.
    """

    request_id: str
    tokens: int
    is_draft: bool = False
    fused_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is to be known before a step is planned.

    Attributes:
        held: requests whose draft would not fit whole. vLLM would cut it, and a canvas that lost its end reads wrong.
        reserved_tokens: budget to keep for canvases. vLLM would give it to the prompts that come after, and every read
            it took in before them would fall back.
    """

    held: tuple[str, ...]
    reserved_tokens: int


def make_room(pending: Iterable[Pending], budget_tokens: int) -> Room:
    """Go through a step's requests in the order in which vLLM takes them.

    What the prefix cache will spare a prompt is not known yet, so a step may have room for more than is reserved here.
    """
    held, reserved_tokens = [], 0
    for request in pending:
        if request.is_draft and request.tokens > budget_tokens:
            held.append(request.request_id)
        elif request.tokens + request.fused_tokens <= budget_tokens:
            budget_tokens -= request.tokens + request.fused_tokens
            reserved_tokens += request.fused_tokens
        else:
            budget_tokens -= min(request.tokens, budget_tokens)
    return Room(held=tuple(held), reserved_tokens=reserved_tokens)
