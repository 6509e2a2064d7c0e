"""When a read may run prompt and canvas in one engine step: rules, no vLLM.

vLLM runs a read in two steps, the prompt and then the canvas. The canvas does not depend on what the first step
computes on the host, so one is enough, provided that the read is of the right kind and both fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    """What a running request wants of the next step: its draft, whole, or as much of its prompt as there is room."""

    request_id: str
    tokens: int
    is_draft: bool


def drafts_to_hold(running: Iterable[Pending], budget_tokens: int) -> Iterator[str]:
    """The requests whose draft the next step has no room for, in the order in which vLLM schedules them.

    vLLM would cut such a canvas to what is left of the budget, and a canvas that lost its end reads wrong.
    """
    for pending in running:
        if pending.is_draft and pending.tokens > budget_tokens:
            yield pending.request_id
        else:
            budget_tokens -= min(pending.tokens, budget_tokens)
