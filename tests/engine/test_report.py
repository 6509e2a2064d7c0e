"""What the scheduler tells the front end, on its way through vLLM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.protocol import EngineStep, Fallback
from engine.report import EngineReport

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

STEPS = (EngineStep(index=3, seconds=0.25), EngineStep(index=5, seconds=0.5))
REPORTS = [
    EngineReport(block_tokens=32),
    EngineReport(block_tokens=64, steps=[(3, 0.25)], is_fused=True),
    *(EngineReport(block_tokens=32, steps=[(3, 0.25), (5, 0.5)], fallback=reason) for reason in Fallback),
]
each_report = pytest.mark.parametrize(
    "sent", REPORTS, ids=["nothing ran", "fused", *(f"fell back: {reason}" for reason in Fallback)]
)


def said(report: EngineReport) -> Any:
    """Everything a report says, in the terms of those who read it."""
    return report.block_tokens, report.engine_steps(), report.is_fused, report.fallback


@each_report
def test_a_report_arrives_as_it_was_sent(sent: EngineReport) -> None:
    """Through anything that carries plain data: tuples may become lists, and a reason a text."""
    arrived = EngineReport.from_params(json.loads(json.dumps(sent.as_params())))
    assert said(arrived) == said(sent)
    assert arrived.fallback is sent.fallback


@each_report
def test_vllm_passes_a_report_on(applied: tuple[str, ...], sent: EngineReport) -> None:
    """In the message that leaves the EngineCore, as vLLM encodes and decodes it."""
    from vllm.v1.engine import EngineCoreOutput
    from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

    assert applied
    message = EngineCoreOutput(request_id="r", new_token_ids=[], kv_transfer_params=sent.as_params())
    received = MsgpackDecoder(EngineCoreOutput).decode(MsgpackEncoder().encode(message)).kv_transfer_params
    arrived = EngineReport.from_params(received)
    assert said(arrived) == said(sent)
    assert arrived.fallback is sent.fallback


def test_steps_in_the_protocols_terms() -> None:
    """In the order in which they ran."""
    assert EngineReport(block_tokens=32, steps=[(3, 0.25), (5, 0.5)]).engine_steps() == STEPS


def test_an_unknown_reason_is_refused() -> None:
    """It would be counted under a label that no operator knows."""
    with pytest.raises(ValueError, match="tired"):
        EngineReport.from_params(EngineReport(block_tokens=32).as_params() | {"fallback": "tired"})


def test_reports_share_nothing() -> None:
    """A request's steps are its own."""
    one, other = EngineReport(block_tokens=32), EngineReport(block_tokens=32)
    one.steps.append((1, 0.5))
    assert other.steps == []
    params = one.as_params()
    one.steps.append((2, 0.5))
    assert params["steps"] == [(1, 0.5)]
