"""What Onestep adds to the protocols of others, in fields whose names start with `x_`: clients ignore what they do not
know, and none of these names will ever be the protocol's own.

What extends a body stands before it among the bases of a class: then pydantic writes it behind.
"""

from __future__ import annotations

from typing import Any, Literal

from app.wire import (
    AnswerResponse,
    DecideResponse,
    PolicyRequest,
    PolicyResponse,
    TimingResponse,
    UsageResponse,
    Wire,
)


class IsolatedPolicy(PolicyRequest):
    """How to read, as for `/decide`; but questions are read apart, unless the request says otherwise."""

    layout: Literal["joint", "split", "isolated"] = "isolated"


class ExtendedAnswer(Wire):
    """How sure an answer is: what `/decide` says of it."""

    x_outcome: Literal["decided", "uncertain", "skipped"]
    x_entropy: float
    x_margin: float
    x_std_error: float | None
    x_agreement: float
    x_reads: int
    x_order_disagreement: float | None
    x_label_mass: float | None
    x_temperature: float


class ExtendedResponse(Wire):
    """What a decision is signed with, how it was read, and what that cost: what `/decide` says of it."""

    x_id: str
    x_outcome: Literal["decided", "uncertain"]
    x_policy: PolicyResponse
    x_usage: UsageResponse
    x_timing: TimingResponse
    x_fingerprint: str


def extended_answer(answer: AnswerResponse) -> dict[str, Any]:
    """The fields of an `ExtendedAnswer`."""
    return {name: getattr(answer, name.removeprefix("x_")) for name in ExtendedAnswer.model_fields}


def extended_response(response: DecideResponse) -> dict[str, Any]:
    """The fields of an `ExtendedResponse`."""
    return {name: getattr(response, name.removeprefix("x_")) for name in ExtendedResponse.model_fields}
