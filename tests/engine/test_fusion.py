"""The rules of fused reads, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from engine.fusion import Candidate, Pending, fallback_reason, is_single_step_read, make_room
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


def prompt(tokens: int, fused_tokens: int = 0) -> Pending:
    """A request with that much of its prompt to go, and the canvas that would be fused to it."""
    return Pending(request_id=f"prompt {tokens}", tokens=tokens, fused_tokens=fused_tokens)


def draft(tokens: int) -> Pending:
    """A request whose canvas is due."""
    return Pending(request_id=f"draft {tokens}", tokens=tokens, is_draft=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomCase:
    """Requests in order, for a step of 100 tokens."""

    id: str
    pending: list[Pending]
    held: tuple[str, ...] = ()
    reserved_tokens: int = 0


ROOM_CASES = [
    RoomCase(id="nobody", pending=[]),
    RoomCase(id="drafts that exactly fit", pending=[draft(60), draft(40)]),
    RoomCase(id="a draft one token too wide", pending=[draft(60), draft(41)], held=("draft 41",)),
    RoomCase(id="a narrower one behind it still fits", pending=[draft(60), draft(41), draft(40)], held=("draft 41",)),
    RoomCase(id="a prompt takes what it can", pending=[prompt(150), draft(1)], held=("draft 1",)),
    RoomCase(id="a prompt behind a draft is cut, not held", pending=[draft(60), prompt(150)]),
    RoomCase(id="a prompt that leaves room", pending=[prompt(40), draft(60)]),
    RoomCase(id="wider than any step", pending=[draft(101), draft(100)], held=("draft 101",)),
    RoomCase(id="a read that exactly fits", pending=[prompt(84, 16)], reserved_tokens=16),
    RoomCase(id="a read one token too long", pending=[prompt(85, 16)]),
    RoomCase(id="a long prompt behind a read", pending=[prompt(20, 16), prompt(500, 16)], reserved_tokens=16),
    RoomCase(id="reads until it is full", pending=[prompt(34, 16), prompt(34, 16), prompt(1, 1)], reserved_tokens=32),
    RoomCase(
        id="no canvas is promised what a draft needs",
        pending=[prompt(30, 16), draft(54), prompt(0, 1)],
        reserved_tokens=16,
    ),
    RoomCase(
        id="a draft behind a read that took its room",
        pending=[prompt(30, 16), draft(55)],
        held=("draft 55",),
        reserved_tokens=16,
    ),
]


@pytest.mark.parametrize("case", ROOM_CASES, ids=lambda case: case.id)
def test_make_room(case: RoomCase) -> None:
    """A draft runs whole or not at all, and a canvas has its place kept from the prompts behind it."""
    room = make_room(case.pending, 100)
    assert (room.held, room.reserved_tokens) == (case.held, case.reserved_tokens)
