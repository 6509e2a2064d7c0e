"""How a bundle is asked of vLLM, and what its answer says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.fusion import BLOCK_TOKENS, BRANCHES, SLOTS
from engine.packing import Bundle
from engine.protocol import CanvasSlot, ReadFailed, ReadResult, SlotLogprobs
from engine.report import EngineReport

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput

LogprobRow = dict[int, Any]


def sampling_params(bundle: Bundle, *, fused: bool) -> Any:
    """vLLM's own structured read (vllm/utils/diffusion.py): seeded canvas, one denoising step, labels reported.

    Where reads are fused the worker also learns how the draft is laid out, and answers one row a slot instead of one a
    canvas token.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    draft = bundle.draft_token_ids
    return SamplingParams(
        max_tokens=len(bundle.slot_offsets) if fused else len(draft),
        detokenize=False,
        skip_clone=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
        logprob_token_ids=list(bundle.label_token_ids),
        extra_args={
            "diffusion_seed_canvas": draft,
            "diffusion_canvas_length": len(draft),
            "diffusion_max_steps": 1,
            "diffusion_read_only": True,
            "diffusion_constrained": bundle.is_constrained,
        }
        | (_placement(bundle) if fused else {}),
    )


def bundle_result(bundle: Bundle, output: RequestOutput, *, fused: bool) -> ReadResult:
    """What was read.

    Raises:
        ReadFailed: the answer is not one to this bundle.
    """
    logprobs, stats = output.outputs[0].logprobs, output.metrics
    wanted = len(bundle.slot_offsets) if fused else len(bundle.draft_token_ids)
    if logprobs is None or len(logprobs) != wanted or stats is None or output.kv_transfer_params is None:
        raise ReadFailed("the engine's answer does not match what it was asked; this is a bug")
    report = EngineReport.from_params(output.kv_transfer_params)
    rows = logprobs if fused else [logprobs[offset] for offset in bundle.slot_offsets]
    reads = len(bundle.branches)
    return ReadResult(
        branch_logprobs=tuple(_split(bundle, rows)),
        fused_reads=reads if report.is_fused else 0,
        fallbacks=() if report.fallback is None else (report.fallback,) * reads,
        prompt_tokens=len(bundle.prompt_token_ids) + sum(len(branch.suffix_token_ids) for branch in bundle.branches),
        cached_tokens=output.num_cached_tokens or 0,
        canvas_tokens=sum(len(branch.canvas_token_ids) for branch in bundle.branches),
        engine_steps=report.engine_steps(),
        queue_seconds=max(0.0, stats.scheduled_ts - stats.queued_ts),
    )


def merge_results(results: Sequence[ReadResult]) -> ReadResult:
    """The result of a request that was cut into several bundles."""
    if len(results) == 1:
        return results[0]
    steps = {step.index: step for result in results for step in result.engine_steps}
    return ReadResult(
        branch_logprobs=tuple(branch for result in results for branch in result.branch_logprobs),
        fused_reads=sum(result.fused_reads for result in results),
        fallbacks=tuple(fallback for result in results for fallback in result.fallbacks),
        prompt_tokens=sum(result.prompt_tokens for result in results),
        cached_tokens=sum(result.cached_tokens for result in results),
        canvas_tokens=sum(result.canvas_tokens for result in results),
        engine_steps=tuple(steps[index] for index in sorted(steps)),
        queue_seconds=min(result.queue_seconds for result in results),
    )


def _placement(bundle: Bundle) -> dict[str, Any]:
    return {
        BRANCHES: [[branch.suffix_tokens, branch.canvas_tokens] for branch in bundle.layout.branches],
        SLOTS: list(bundle.slot_offsets),
        BLOCK_TOKENS: bundle.block_tokens,
    }


def _split(bundle: Bundle, rows: Sequence[LogprobRow]) -> list[SlotLogprobs]:
    """The rows of all slots, branch by branch."""
    remaining = iter(rows)
    return [tuple(_slot_logprobs(slot, next(remaining)) for slot in branch.canvas_slots) for branch in bundle.branches]


def _slot_logprobs(slot: CanvasSlot, row: LogprobRow) -> tuple[float, ...]:
    try:
        return tuple(row[label].logprob for label in slot.label_token_ids)
    except KeyError:
        raise ReadFailed("the engine's answer lacks a label it was asked for; this is a bug") from None
