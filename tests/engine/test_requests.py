"""How a bundle is asked of vLLM, and how its answer is read: which row is which slot's, and what the whole cost."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.fusion import is_single_step_read
from engine.packing import Bundle
from engine.protocol import Branch, CanvasSlot, EngineStep, Fallback, ReadFailed, ReadResult
from engine.report import EngineReport
from engine.requests import bundle_result, merge_results, sampling_params

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

WIDE = Branch(
    suffix_token_ids=(6,),
    canvas_token_ids=(11, 12, 13),
    canvas_slots=(
        CanvasSlot(position=0, label_token_ids=(40, 30)),
        CanvasSlot(position=2, label_token_ids=(30, 31, 32)),
    ),
)
NARROW = Branch(canvas_token_ids=(21, 22), canvas_slots=(CanvasSlot(position=1, label_token_ids=(33, 32)),))
# One read: its draft is its canvas, with slots at 0 and 2.
SINGLE = Bundle((1, 2, 3, 4, 5, 6), (WIDE.without_suffix(),), 4)
# The suffix, the first canvas, three tokens of filler, the prompt's last token, the second canvas.
BUNDLE = Bundle((1, 2, 3, 4, 5), (WIDE, NARROW), 4)
DRAFT = [6, 11, 12, 13, 5, 5, 5, 5, 21, 22]


def logprob(offset: int, label: int) -> float:
    """What the engine answers in these tests: another number for each place in the draft and each label."""
    return -offset - label / 1000


def row(offset: int) -> dict[int, Any]:
    """The engine's answer for a place in the draft: the sampled token, and the labels of all slots."""
    return {label: SimpleNamespace(logprob=logprob(offset, label)) for label in (99, 30, 31, 32, 33, 40)}


def rows(bundle: Bundle, *, fused: bool) -> list[dict[int, Any]]:
    """A row a slot where reads are fused, else a row a token of the draft."""
    return [row(at) for at in (bundle.slot_offsets if fused else range(len(bundle.draft_token_ids)))]


def report(**changed: Any) -> dict[str, Any]:
    """What the scheduler says of a request."""
    return EngineReport(**{"block_tokens": 4, "steps": [(7, 0.5)], "is_fused": True, **changed}).as_params()


def output(logprobs: list[dict[int, Any]] | None, **changed: Any) -> Any:
    """As much of vLLM's `RequestOutput` as is looked at."""
    answered: dict[str, Any] = {
        "outputs": [SimpleNamespace(logprobs=logprobs)],
        "metrics": SimpleNamespace(queued_ts=2.0, scheduled_ts=2.25),
        "kv_transfer_params": report(),
        "num_cached_tokens": 4,
    }
    return SimpleNamespace(**{**answered, **changed})


READ = {
    "diffusion_seed_canvas": DRAFT,
    "diffusion_canvas_length": 10,
    "diffusion_max_steps": 1,
    "diffusion_read_only": True,
    "diffusion_constrained": True,
}
PLACEMENT = {"onestep_branches": [[1, 3], [0, 2]], "onestep_slots": [1, 3, 9], "onestep_block_tokens": 4}


@pytest.mark.parametrize(
    ("fused", "max_tokens", "extra_args"),
    [(True, 3, READ | PLACEMENT), (False, 10, READ)],
    ids=["fused", "two steps"],
)
def test_sampling_params(applied: tuple[str, ...], fused: bool, max_tokens: int, extra_args: dict[str, Any]) -> None:
    """A row a slot and where everything stands, or a row a token as vLLM has it; the labels once, ascending."""
    assert applied
    params = sampling_params(BUNDLE, fused=fused)
    assert (params.max_tokens, params.extra_args) == (max_tokens, extra_args)
    assert params.logprob_token_ids == [30, 31, 32, 33, 40]
    assert params.detokenize is False
    assert is_single_step_read(params.extra_args)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "two steps"])
def test_logprobs_over_the_whole_vocabulary(applied: tuple[str, ...], fused: bool) -> None:
    """Of the same labels, at the same places; vLLM constrains nothing."""
    assert applied
    params = sampling_params(replace(BUNDLE, is_constrained=False), fused=fused)
    constrained = sampling_params(BUNDLE, fused=fused)
    assert params.extra_args == {**constrained.extra_args, "diffusion_constrained": False}
    assert params.logprob_token_ids == constrained.logprob_token_ids


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "two steps"])
@pytest.mark.parametrize("bundle", [SINGLE, BUNDLE], ids=["single", "bundle"])
def test_vllm_takes_the_sampling_params(applied: tuple[str, ...], bundle: Bundle, fused: bool) -> None:
    """By its own check, where the served canvas is exactly as wide as the draft, and answers once, at the end."""
    from vllm.sampling_params import RequestOutputKind
    from vllm.utils.diffusion import validate_diffusion_sampling_params

    assert applied
    params = sampling_params(bundle, fused=fused)
    validate_diffusion_sampling_params(params, canvas_length=len(bundle.draft_token_ids), vocab_size=100)
    assert params.output_kind is RequestOutputKind.FINAL_ONLY


SINGLE_LOGPROBS = ((logprob(0, 40), logprob(0, 30)), (logprob(2, 30), logprob(2, 31), logprob(2, 32)))
BUNDLE_LOGPROBS = ((logprob(1, 40), logprob(1, 30)), (logprob(3, 30), logprob(3, 31), logprob(3, 32)))


@pytest.mark.parametrize("fused", [True, False], ids=["a row a slot", "a row a token"])
@pytest.mark.parametrize(
    ("bundle", "expected"),
    [(SINGLE, (SINGLE_LOGPROBS,)), (BUNDLE, (BUNDLE_LOGPROBS, ((logprob(9, 33), logprob(9, 32)),)))],
    ids=["single", "bundle"],
)
def test_each_slot_gets_its_own_row(bundle: Bundle, expected: Any, fused: bool) -> None:
    """Branch by branch, its labels in the slot's order, whatever else the row holds."""
    assert bundle_result(bundle, output(rows(bundle, fused=fused)), fused=fused).branch_logprobs == expected


def test_what_a_bundle_cost() -> None:
    """The prompt once, suffixes and canvases without filler and copies; steps and waiting as reported."""
    steps = [(7, 0.5), (9, 0.25)]
    result = bundle_result(BUNDLE, output(rows(BUNDLE, fused=True), kv_transfer_params=report(steps=steps)), fused=True)
    assert (result.prompt_tokens, result.cached_tokens, result.canvas_tokens) == (5 + 1, 4, 3 + 2)
    assert result.engine_steps == (EngineStep(index=7, seconds=0.5), EngineStep(index=9, seconds=0.25))
    assert result.queue_seconds == 0.25


def test_what_was_not_measured_is_nothing() -> None:
    """No count of cached tokens, and clocks that disagree."""
    clocks = SimpleNamespace(queued_ts=3.0, scheduled_ts=0.0)
    answered = output(rows(SINGLE, fused=True), metrics=clocks, num_cached_tokens=None)
    result = bundle_result(SINGLE, answered, fused=True)
    assert (result.cached_tokens, result.queue_seconds) == (0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """What the scheduler reports of a bundle of two, and what becomes of its branches."""

    id: str
    fused: bool = True
    is_fused: bool = False
    fallback: Fallback | None = None
    fused_reads: int = 0
    fallbacks: tuple[Fallback, ...] = ()


PATHS = [
    Path(id="fused", is_fused=True, fused_reads=2),
    Path(id="two steps, as asked", fused=False),
    *(Path(id=reason.value, fallback=reason, fallbacks=(reason, reason)) for reason in Fallback),
]


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_each_branch_goes_the_way_of_its_bundle(case: Path) -> None:
    """All were fused, or all fell back for the one reason."""
    told = report(is_fused=case.is_fused, fallback=case.fallback)
    answered = output(rows(BUNDLE, fused=case.fused), kv_transfer_params=told)
    result = bundle_result(BUNDLE, answered, fused=case.fused)
    assert (result.fused_reads, result.fallbacks) == (case.fused_reads, case.fallbacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """An answer that is none to what was asked."""

    id: str
    answered: Any
    fused: bool = True


UNFIT = [
    Unfit(id="no rows", answered=output(None)),
    Unfit(id="empty", answered=output([])),
    Unfit(id="a row too few", answered=output(rows(BUNDLE, fused=True)[:-1])),
    Unfit(id="a row too many", answered=output([*rows(BUNDLE, fused=True), row(9)])),
    Unfit(id="a row a token where reads are fused", answered=output(rows(BUNDLE, fused=False))),
    Unfit(id="a row a slot where they are not", answered=output(rows(BUNDLE, fused=True)), fused=False),
    Unfit(id="no report", answered=output(rows(BUNDLE, fused=True), kv_transfer_params=None)),
    Unfit(id="a label missing", answered=output([{99: row(0)[99]} for _ in rows(BUNDLE, fused=True)])),
    Unfit(id="no clocks", answered=output(rows(BUNDLE, fused=True), metrics=None)),
]


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case.id)
def test_an_answer_to_something_else(case: Unfit) -> None:
    """R15: fails the read, loudly; logprobs of other places would make a decision as good as any."""
    with pytest.raises(ReadFailed, match="this is a bug"):
        bundle_result(BUNDLE, case.answered, fused=case.fused)


def step(index: int) -> EngineStep:
    """A step that took as many seconds as its index."""
    return EngineStep(index=index, seconds=float(index))


FIRST = ReadResult(
    branch_logprobs=(((-1.0,),), ((-2.0,),)),
    fused_reads=2,
    fallbacks=(),
    prompt_tokens=100,
    cached_tokens=32,
    canvas_tokens=10,
    engine_steps=(step(4), step(9)),
    queue_seconds=0.5,
)
SECOND = ReadResult(
    branch_logprobs=(((-3.0,),), ((-4.0,),)),
    fused_reads=0,
    fallbacks=(Fallback.BUDGET, Fallback.BUDGET),
    prompt_tokens=110,
    cached_tokens=64,
    canvas_tokens=20,
    engine_steps=(step(3), step(4)),
    queue_seconds=0.25,
)
THIRD = replace(SECOND, branch_logprobs=(((-5.0,),),), fallbacks=(Fallback.BLOCKS,), engine_steps=(step(10),))
FOURTH = replace(FIRST, branch_logprobs=(((-6.0,),),), fused_reads=1, queue_seconds=0.75)


def test_one_bundle_is_the_whole_result() -> None:
    """There is nothing to merge."""
    assert merge_results([FIRST]) is FIRST


def test_bundles_are_merged() -> None:
    """Branches in the request's order, costs added up, shared steps once and in order; the wait ends with the first."""
    assert merge_results([FIRST, SECOND, THIRD, FOURTH]) == ReadResult(
        branch_logprobs=(((-1.0,),), ((-2.0,),), ((-3.0,),), ((-4.0,),), ((-5.0,),), ((-6.0,),)),
        fused_reads=3,
        fallbacks=(Fallback.BUDGET, Fallback.BUDGET, Fallback.BLOCKS),
        prompt_tokens=420,
        cached_tokens=192,
        canvas_tokens=60,
        engine_steps=(step(3), step(4), step(9), step(10)),
        queue_seconds=0.25,
    )


def test_merging_leaves_no_field_out() -> None:
    """The results merged above differ in each: what a new field becomes has to be said there."""
    merged = merge_results([FIRST, SECOND])
    names = [field.name for field in fields(ReadResult)]
    assert [name for name in names if getattr(FIRST, name) == getattr(SECOND, name)] == []
    assert [name for name in names if getattr(merged, name) == getattr(FIRST, name)] == ["fused_reads"]
