"""The rules of fused reads, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from engine.fusion import Candidate, Pending, drafts_to_hold, fallback_reason, is_single_step_read
from engine.protocol import Fallback

READ = {"diffusion_read_only": True, "diffusion_max_steps": 1, "diffusion_seed_canvas": [5, 6, 7, 8]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request whose prompt is finished in this step, and what becomes of it."""

    id: str
    expected: Fallback | None
    extra_args: Any = None
    wants_prompt_logprobs: bool = False
    prompt_tokens: int = 60
    draft_tokens: int = 4
    budget_tokens: int = 4
    max_model_len: int = 64


CASES = [
    Case(id="a read that exactly fits", expected=None),
    Case(id="one token over the budget", expected=Fallback.BUDGET, budget_tokens=3),
    Case(id="no budget left", expected=Fallback.BUDGET, budget_tokens=0),
    Case(id="one token over the context", expected=Fallback.CONTEXT, prompt_tokens=61),
    Case(id="over both", expected=Fallback.CONTEXT, prompt_tokens=61, budget_tokens=0),
    Case(id="flags as integers", expected=None, extra_args={**READ, "diffusion_read_only": 1}),
    Case(id="unconstrained", expected=None, extra_args={**READ, "diffusion_constrained": False}),
    Case(id="several denoising steps", expected=Fallback.INELIGIBLE, extra_args={**READ, "diffusion_max_steps": 2}),
    Case(
        id="as many steps as it takes",
        expected=Fallback.INELIGIBLE,
        extra_args={k: v for k, v in READ.items() if k != "diffusion_max_steps"},
    ),
    Case(id="writes", expected=Fallback.INELIGIBLE, extra_args={**READ, "diffusion_read_only": False}),
    Case(
        id="no canvas of its own",
        expected=Fallback.INELIGIBLE,
        extra_args={k: v for k, v in READ.items() if k != "diffusion_seed_canvas"},
    ),
    Case(id="plain generation", expected=Fallback.INELIGIBLE, extra_args={}),
    Case(id="prompt logprobs", expected=Fallback.INELIGIBLE, wants_prompt_logprobs=True),
    Case(
        id="ineligible says so, fit or not",
        expected=Fallback.INELIGIBLE,
        wants_prompt_logprobs=True,
        prompt_tokens=99,
        budget_tokens=0,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_fallback_reason(case: Case) -> None:
    """One reason, the most telling, or none."""
    candidate = Candidate(
        extra_args=READ if case.extra_args is None else case.extra_args,
        wants_prompt_logprobs=case.wants_prompt_logprobs,
        sequence_tokens=case.prompt_tokens + case.draft_tokens,
        draft_tokens=case.draft_tokens,
    )
    reason = fallback_reason(candidate, budget_tokens=case.budget_tokens, max_model_len=case.max_model_len)
    assert reason is case.expected


def test_single_step_read() -> None:
    """All three marks, and no fewer."""
    assert is_single_step_read(READ)
    for mark in READ:
        assert not is_single_step_read({key: value for key, value in READ.items() if key != mark})


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCase:
    """Running requests by name: a prompt's tokens, or a draft's (negative). Who waits."""

    id: str
    running: dict[str, int]
    held: list[str]
    budget_tokens: int = 100


HOLD_CASES = [
    HoldCase(id="nobody", running={}, held=[]),
    HoldCase(id="drafts that exactly fit", running={"a": -60, "b": -40}, held=[]),
    HoldCase(id="a draft one token too wide", running={"a": -60, "b": -41}, held=["b"]),
    HoldCase(id="a narrower one behind it still fits", running={"a": -60, "b": -41, "c": -40}, held=["b"]),
    HoldCase(id="a prompt takes what it can", running={"a": 150, "b": -1}, held=["b"]),
    HoldCase(id="a prompt behind a draft is cut, not held", running={"a": -60, "b": 150}, held=[]),
    HoldCase(id="a prompt that leaves room", running={"a": 40, "b": -60}, held=[]),
    HoldCase(id="wider than any step", running={"a": -101, "b": -100}, held=["a"]),
]


@pytest.mark.parametrize("case", HOLD_CASES, ids=lambda case: case.id)
def test_drafts_to_hold(case: HoldCase) -> None:
    """A draft runs whole or not at all."""
    running = [Pending(request_id=id, tokens=abs(tokens), is_draft=tokens < 0) for id, tokens in case.running.items()]
    assert list(drafts_to_hold(running, case.budget_tokens)) == case.held
