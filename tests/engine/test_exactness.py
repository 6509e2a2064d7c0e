"""Fused and bundled reads give what vLLM's own two steps give, number by number, in float32."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest

from engine.packing import alone, pack
from engine.protocol import Fallback, ReadRequest, ReadResult
from engine.report import EngineReport
from tests.engine import mutants
from tests.engine.reads import ReadMaker, branch_distance, distance
from tests.engine.running import RunningEngine

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]

TOLERANCE = 1e-4
BLOCK_TOKENS = 32

# To beyond the sliding window of 512, with block boundaries hit, missed by one, and exactly filled by the canvas.
PROMPT_TOKENS = (1, 2, 16, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 188, 257, 447, 448, 480, 511, 512, 513, 600, 1250)
LONG_PROMPT_TOKENS = (2000, 2048, 3000, 4032)
WIDTHS = (4, 16, 31, 32, 33, 64)


def is_fused(result: ReadResult) -> bool:
    """All of it, in one engine step."""
    return result.fused_reads == len(result.branch_logprobs) and len(result.engine_steps) == 1


def serial_reads() -> list[ReadRequest]:
    """Every prompt length with changing widths; each twice, so that the second finds its prefix cached."""
    maker = ReadMaker(1)
    reads = [
        maker.read(length, (0, WIDTHS[(number + at) % len(WIDTHS)]))
        for number, length in enumerate(PROMPT_TOKENS)
        for at in range(2)
    ] + [maker.read(length, (0, 64)) for length in LONG_PROMPT_TOKENS]
    again = [maker.read(0, (0, 16), prompt=read.prompt_token_ids) for read in reads]
    return [read for pair in zip(reads, again, strict=True) for read in pair]


def test_reads_one_by_one(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """100 reads, cold and warm: one engine step instead of two, and the same logprobs."""
    reads = serial_reads()
    assert len(reads) == 100
    fused, two_step = fused_engine.read_one_by_one(reads), two_step_engine.read_one_by_one(reads)
    assert all(map(is_fused, fused))
    assert [len(result.engine_steps) for result in two_step] == [2] * len(reads)
    assert sum(result.fused_reads for result in two_step) == 0
    assert distance(fused, two_step) <= TOLERANCE


def test_one_token_left_after_a_cache_hit(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """The shortest prompt row there is."""
    maker = ReadMaker(2)
    first = [maker.read(BLOCK_TOKENS * blocks + 1, (0, 8)) for blocks in (1, 2, 5, 20)]
    again = [maker.read(0, (0, 8), prompt=read.prompt_token_ids) for read in first]
    fused_engine.read_one_by_one(first)
    fused = fused_engine.read_one_by_one(again)
    assert [result.cached_tokens for result in fused] == [len(read.prompt_token_ids) - 1 for read in again]
    assert all(map(is_fused, fused))
    assert distance(fused, two_step_engine.read_one_by_one(again)) <= TOLERANCE


@pytest.mark.parametrize("shared_tokens", [64, 480, 512, 544, 1280])
def test_a_shared_prefix_is_found_the_second_time(
    fused_engine: RunningEngine, two_step_engine: RunningEngine, shared_tokens: int
) -> None:
    """R19: also one longer than the sliding window, with another end each time: all its full blocks."""
    maker = ReadMaker(100 + shared_tokens)
    shared = maker.tokens(shared_tokens)
    reads = [maker.read(0, (0, 8), prompt=shared + maker.tokens(40)) for _ in range(4)]
    results = fused_engine.read_one_by_one(reads)
    assert [result.cached_tokens for result in results] == [0, *[shared_tokens] * 3]
    assert distance(results, two_step_engine.read_one_by_one(reads)) <= TOLERANCE


def test_salts_keep_prefixes_apart(fused_engine: RunningEngine) -> None:
    """S3, in part: a request finds its own salt's prefix cached, and nobody else's; it reads the same either way."""
    read = ReadMaker(9).read(100, (0, 8), (12, 8))
    salted = [dataclasses.replace(read, cache_salt=salt, request_id=f"r{n}") for n, salt in enumerate("aab")]
    results = fused_engine.read_one_by_one(salted)
    assert [result.cached_tokens for result in results] == [0, 96, 0]
    assert distance(results, [results[0]] * 3) <= TOLERANCE


def test_unconstrained_reads(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """Normalised over the whole vocabulary, so that reads of different labels can be compared; beside others too."""
    maker = ReadMaker(10)
    reads = [
        dataclasses.replace(maker.read(90, (0, 8), (12, 30)), is_constrained=number % 3 == 0) for number in range(9)
    ]
    for fused in (fused_engine.read_together(reads), fused_engine.read_one_by_one(reads)):
        two_step = [two_step_engine.read_one_by_one(alone(read)) for read in reads]
        for read, result, single in zip(reads, fused, two_step, strict=True):
            assert worst_branch(result, single) <= TOLERANCE
            if not read.is_constrained:
                for branch, other in zip(result.branch_logprobs, single, strict=True):
                    assert np.concatenate(branch) == pytest.approx(np.concatenate(other.branch_logprobs[0]), abs=1e-4)


def batches(seed: int, sizes: range) -> Iterator[list[ReadRequest]]:
    """Single reads of all kinds, 1 to 16 at a time; half of each batch shares a prefix with the batch before."""
    maker = ReadMaker(seed)
    known: tuple[int, ...] = maker.tokens(64)
    for size in sizes:
        reads = []
        for number in range(size):
            prompt = known[: 32 * maker.random.randint(0, 2)] if number % 2 else ()
            rest = maker.tokens(maker.random.choice(PROMPT_TOKENS))
            reads.append(maker.read(0, (0, maker.random.choice(WIDTHS)), prompt=prompt + rest))
        known = maker.random.choice(reads).prompt_token_ids
        yield reads


def test_reads_together(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """136 reads, 1 to 16 at once, of different widths and labels: each gets its own logprobs, whoever is beside it."""
    groups = list(batches(3, range(1, 17)))
    assert sum(map(len, groups)) == 136
    for group in groups:
        assert distance(fused_engine.read_together(group), two_step_engine.read_one_by_one(group)) <= TOLERANCE


def random_bundle(maker: ReadMaker) -> ReadRequest:
    """A prompt of 1 to 2,000 tokens and 2 to 16 branches of suffix 0 to 200 and width 1 to 64."""
    pick = maker.random
    prompt_tokens = round(2000 ** pick.random())
    has_suffixes, longest = pick.random() < 0.7, pick.choice((8, 40, 200))
    shapes = [
        (pick.randint(0, longest) if has_suffixes else 0, pick.randint(1, 64)) for _ in range(pick.randint(2, 16))
    ]
    return maker.read(prompt_tokens, *shapes)


def worst_branch(bundle: ReadResult, single: list[ReadResult]) -> float:
    """How far the branches of a bundle are from the same reads done alone."""
    pairs = zip(bundle.branch_logprobs, single, strict=True)
    return max(branch_distance(branch, result.branch_logprobs[0]) for branch, result in pairs)


def test_bundles_one_by_one(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """150 random bundles, each in one engine step when it fits; each branch reads as it does alone."""
    maker = ReadMaker(4)
    in_one_step = 0
    for _ in range(150):
        bundle = random_bundle(maker)
        result = fused_engine.read(bundle)
        fits = len(list(pack(bundle, fused_engine.engine._limits()))) == 1
        # The parts of one that does not fit may meet in a step, which then is too small for both.
        assert result.fallbacks == () if fits else set(result.fallbacks) <= {Fallback.BUDGET}
        assert is_fused(result) or not fits
        in_one_step += fits
        assert worst_branch(result, two_step_engine.read_together(alone(bundle))) <= TOLERANCE
    assert in_one_step > 100


def test_bundles_with_a_warm_prefix(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """50 bundles whose prompt is cached up to its last full block: that block is shared, and still only read."""
    maker = ReadMaker(5)
    for _ in range(50):
        bundle = random_bundle(maker)
        fused_engine.read(maker.read(0, (0, 4), prompt=bundle.prompt_token_ids))
        result = fused_engine.read(bundle)
        cached = (len(bundle.prompt_token_ids) - 1) // BLOCK_TOKENS * BLOCK_TOKENS
        assert result.cached_tokens >= cached
        assert worst_branch(result, two_step_engine.read_together(alone(bundle))) <= TOLERANCE


def test_bundles_among_others(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """120 bundles among each other and single reads, more than a step can hold: some fall back, all are exact."""
    maker = ReadMaker(6)
    fallbacks: list[Fallback] = []
    for _ in range(30):
        requests = [random_bundle(maker) for _ in range(4)]
        requests += [maker.read(maker.random.choice(PROMPT_TOKENS), (0, maker.random.choice(WIDTHS))) for _ in range(3)]
        for request, result in zip(requests, fused_engine.read_together(requests), strict=True):
            assert result.fused_reads + len(result.fallbacks) == len(request.branches)
            fallbacks += result.fallbacks
            assert worst_branch(result, two_step_engine.read_together(alone(request))) <= TOLERANCE
    assert set(fallbacks) == {Fallback.BUDGET}


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_exactness_can_fail(
    fused_engine: RunningEngine, two_step_engine: RunningEngine, mutate: Callable[[str | None], None], name: str
) -> None:
    """The comparison notices every mistake it is there for."""
    maker = ReadMaker(7)
    # So many that most of them share a step: the first runs as soon as it arrives.
    reads = [
        maker.read(100, (0, 16)),
        maker.read(75, (20, 16), (0, 8), (30, 16)),
        *(maker.read(40, (0, 9)) for _ in range(4)),
    ]
    expected = [result for read in reads for result in two_step_engine.read_one_by_one(alone(read))]
    assert distance(fused_engine.read_together(reads), expected) <= TOLERANCE
    mutate(name)
    assert distance(fused_engine.read_together(reads), expected) > 10 * TOLERANCE
    mutate(None)
    assert distance(fused_engine.read_together(reads), expected) <= TOLERANCE


def foreign_params(kind: str, canvas: list[int], labels: list[int]) -> Any:
    """Requests of vLLM's own kinds that a read may share a step with."""
    from vllm import SamplingParams

    extra = {"diffusion_seed_canvas": canvas, "diffusion_canvas_length": len(canvas), "diffusion_read_only": True}
    kinds: dict[str, dict[str, Any]] = {
        # Everything held: what is left of several steps is the same every time. So many steps that whatever is sent
        # with it arrives while it runs.
        "multi-step": {"diffusion_max_steps": 20, "diffusion_pinned": list(range(len(canvas)))},
        "unconstrained": {"diffusion_max_steps": 1},
        "constrained": {"diffusion_max_steps": 1, "diffusion_constrained": True},
    }
    return SamplingParams(
        max_tokens=len(canvas), detokenize=False, logprob_token_ids=labels, extra_args={**extra, **kinds[kind]}
    )


def foreign_logprobs(output: Any, labels: list[int]) -> list[list[float]]:
    """[canvas, labels]."""
    return [[row[label].logprob for label in labels] for row in output.outputs[0].logprobs]


def test_a_mixed_batch(fused_engine: RunningEngine, two_step_engine: RunningEngine) -> None:
    """Reads, bundles, multi-step, unconstrained and plain reads in one batch each give what vLLM gives them alone."""
    maker = ReadMaker(8)
    foreign = [
        (kind, list(maker.tokens(40 + 25 * n)), list(maker.tokens(8 + 8 * n)), [50 + n, 60, 70])
        for kind in ("multi-step", "unconstrained", "constrained")
        for n in range(2)
    ]
    ours = [maker.read(60, (0, 12)), maker.read(700, (0, 64)), maker.read(90, (5, 9), (0, 20), (33, 1))]

    def jobs(engine: RunningEngine, run: str) -> list[Coroutine[Any, Any, Any]]:
        return [
            engine.generate(prompt, foreign_params(kind, canvas, labels), f"{run}-{number}")
            for number, (kind, prompt, canvas, labels) in enumerate(foreign)
        ]

    async def together() -> list[Any]:
        return await asyncio.gather(*jobs(fused_engine, "together"), *map(fused_engine.engine.read, ours))

    results = fused_engine.wait(together())
    outputs, reads = results[: len(foreign)], results[len(foreign) :]
    expected = [two_step_engine.wait(job) for job in jobs(two_step_engine, "alone")]
    for output, wanted, (*_, labels) in zip(outputs, expected, foreign, strict=True):
        for row, wanted_row in zip(foreign_logprobs(output, labels), foreign_logprobs(wanted, labels), strict=True):
            assert row == pytest.approx(wanted_row, abs=TOLERANCE)
    for request, result in zip(ours, reads, strict=True):
        assert worst_branch(result, two_step_engine.read_one_by_one(alone(request))) <= TOLERANCE
    steps = [{index for index, _ in EngineReport.from_params(output.kv_transfer_params).steps} for output in outputs]
    steps += [{step.index for step in read.engine_steps} for read in reads]
    running = set.intersection(*steps[:2])
    assert all(own & running for own in steps), "one of them did not share a step with the multi-step requests"
