"""The fake engine: deterministic, scriptable, and it remembers what it was asked."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint import Checkpoint
from engine.fake import REMEMBERED_READS, FakeEngine
from engine.packing import alone
from engine.protocol import (
    Branch,
    CanvasSlot,
    Engine,
    EngineDied,
    EngineError,
    EngineStartFailed,
    ReadFailed,
    ReadRequest,
)
from engine.settings import EngineSettings
from tests.engine.reads import ReadMaker, normalised

SETTINGS = EngineSettings(
    checkpoint=Checkpoint(folder=Path("none"), revision="r1"),
    name="fake-model",
    dtype="auto",
    canvas_length=32,
    fused_reads=True,
    bundle_tokens=128,
    max_model_len=512,
    max_num_seqs=4,
    max_batched_tokens=256,
    kv_cache_gib=None,
    block_size=32,
)
TWO_STEP = replace(SETTINGS, fused_reads=False)
SLOTS = (
    CanvasSlot(position=0, label_token_ids=(7, 8, 9)),
    CanvasSlot(position=2, label_token_ids=(8, 7)),
)


def branch(canvas: tuple[int, ...] = (3, 4, 5), suffix: tuple[int, ...] = ()) -> Branch:
    """A canvas with two slots."""
    return Branch(canvas_token_ids=canvas, canvas_slots=SLOTS, suffix_token_ids=suffix)


def read(*branches: Branch, prompt: tuple[int, ...] = (1, 2), request_id: str = "r") -> ReadRequest:
    """A read of one branch unless told."""
    return ReadRequest(request_id=request_id, prompt_token_ids=prompt, branches=branches or (branch(),))


@pytest.fixture
def engine() -> FakeEngine:
    """An engine that answers at once."""
    return FakeEngine(settings=SETTINGS)


async def test_start_describes_the_engine(engine: FakeEngine) -> None:
    """What it was started with, in the form of the contract."""
    contract: Engine = engine
    info = await contract.start()
    assert (info.model, info.revision, info.canvas_length, info.max_model_len) == ("fake-model", "r1", 32, 512)
    assert (info.fused_reads, info.bundle_tokens) == (True, 128)


async def test_start_describes_an_engine_that_does_not_fuse() -> None:
    """It has no bundles, whatever their width is set to."""
    info = await FakeEngine(settings=TWO_STEP).start()
    assert (info.fused_reads, info.bundle_tokens) == (False, 0)


async def test_equal_reads_get_equal_answers(engine: FakeEngine) -> None:
    """Whoever asks, however often, in whichever instance; R17."""
    first = await engine.read(read(request_id="a"))
    again = await FakeEngine(settings=SETTINGS).read(read(request_id="b"))
    assert first.branch_logprobs == again.branch_logprobs
    (answer,) = first.branch_logprobs
    assert [len(logprobs) for logprobs in answer] == [3, 2]
    assert [sum(map(math.exp, logprobs)) for logprobs in answer] == pytest.approx([1, 1])


@pytest.mark.parametrize(
    "other",
    [read(prompt=(1, 3)), read(branch(canvas=(3, 4, 6))), read(branch(suffix=(6,)))],
    ids=["prompt", "canvas", "suffix"],
)
async def test_other_reads_get_other_answers(engine: FakeEngine, other: ReadRequest) -> None:
    """Answers depend on all that was asked, and differ from slot to slot."""
    (answer,) = (await engine.read(read())).branch_logprobs
    assert (await engine.read(other)).branch_logprobs != (answer,)
    assert answer[0][0] - answer[0][1] != pytest.approx(answer[1][1] - answer[1][0])


@pytest.mark.parametrize("settings", [SETTINGS, TWO_STEP], ids=["fused", "two steps"])
async def test_a_branch_is_read_as_if_alone(settings: EngineSettings) -> None:
    """In a bundle or behind a prompt of its own, next to whatever other branch, fused or not."""
    maker = ReadMaker(5)
    together = maker.read(20, (0, 8), (4, 12), (0, 8), (9, 3))
    answered = (await FakeEngine(settings=settings).read(together)).branch_logprobs
    engine = FakeEngine(settings=SETTINGS)
    apart = [(await engine.read(request)).branch_logprobs for request in alone(together)]
    assert [(answer,) for answer in answered] == apart
    assert len(set(answered)) == 4


async def test_equal_branches_get_equal_answers(engine: FakeEngine) -> None:
    """Where a branch stands does not matter, nor which tokens of it are called prompt and which suffix."""
    first, other, again = (await engine.read(read(branch(), branch(suffix=(6,)), branch()))).branch_logprobs
    assert first == again != other
    assert (await engine.read(read(prompt=(1, 2, 6)))).branch_logprobs == (other,)


async def test_an_unconstrained_slot_may_be_read_in_parts(engine: FakeEngine) -> None:
    """What is reported for a label does not depend on the labels that it is asked with; constrained it does."""

    def read_labels(*portions: range, is_constrained: bool) -> ReadRequest:
        slots = (CanvasSlot(position=1, label_token_ids=tuple(portion)) for portion in portions)
        branches = tuple(Branch(canvas_token_ids=(3, 4, 5), canvas_slots=(slot,)) for slot in slots)
        return ReadRequest(request_id="r", prompt_token_ids=(1, 2), branches=branches, is_constrained=is_constrained)

    async def answered(*portions: range, is_constrained: bool) -> list[float]:
        result = await engine.read(read_labels(*portions, is_constrained=is_constrained))
        return [logprob for ((*logprobs,),) in result.branch_logprobs for logprob in logprobs]

    whole, rest = range(300, 420), range(420, 555)
    parts = await answered(whole, rest[:120], rest[120:], is_constrained=False)
    assert parts[:120] == await answered(whole, is_constrained=False)
    assert await answered(whole, is_constrained=True) == pytest.approx(normalised(parts[:120]))
    assert parts[:120] != pytest.approx(await answered(whole, is_constrained=True))
    # Of a vocabulary that holds more than the most labels a slot may have.
    assert len(parts) == 255
    assert sum(map(math.exp, parts)) < 1


async def test_reads_are_accounted_for(engine: FakeEngine) -> None:
    """Tokens and engine steps, which go on counting from read to read; the reads themselves in order."""
    results = [await engine.read(read(request_id=request_id)) for request_id in "ab"]
    assert [(r.prompt_tokens, r.canvas_tokens, r.cached_tokens) for r in results] == [(2, 3, 0)] * 2
    assert [[step.index for step in r.engine_steps] for r in results] == [[1], [2]]
    assert [request.request_id for request in engine.requests] == ["a", "b"]


async def test_branches_are_accounted_for(engine: FakeEngine) -> None:
    """The prompt once, each suffix and canvas for itself; one step for all."""
    result = await engine.read(read(branch(suffix=(6, 7)), branch(canvas=(3, 4, 5, 6)), branch(suffix=(8,))))
    assert (result.prompt_tokens, result.canvas_tokens) == (2 + 3, 3 + 4 + 3)
    assert (result.fused_reads, result.fallbacks, len(result.engine_steps)) == (3, (), 1)


async def test_reads_that_are_not_fused_take_two_steps() -> None:
    """And fall back from nothing: nobody wanted them fused."""
    engine = FakeEngine(settings=TWO_STEP)
    results = [await engine.read(read()), await engine.read(read(branch(), branch()))]
    assert [[step.index for step in result.engine_steps] for result in results] == [[1, 2], [3, 4]]
    assert [(result.fused_reads, result.fallbacks) for result in results] == [(0, ())] * 2


async def test_answers_can_be_scripted(engine: FakeEngine) -> None:
    """A script sees request, branch and slot."""
    engine.logprobs = lambda request, branch, slot: (
        float(len(request.branches)),
        float(branch.canvas_token_ids[0]),
        float(slot.position),
    )
    result = await engine.read(read(branch(), branch(canvas=(4, 4, 4))))
    assert result.branch_logprobs == (((2.0, 3.0, 0.0), (2.0, 3.0, 2.0)), ((2.0, 4.0, 0.0), (2.0, 4.0, 2.0)))


async def test_only_the_latest_reads_are_remembered(engine: FakeEngine) -> None:
    """It may run for as long as a real one; R16."""
    for number in range(REMEMBERED_READS + 2):
        await engine.read(read(request_id=str(number)))
    assert len(engine.requests) == REMEMBERED_READS
    assert engine.requests[-1].request_id == str(REMEMBERED_READS + 1)


async def test_reads_wait_at_the_gate(engine: FakeEngine) -> None:
    """Asked for, but not answered, until the gate is opened."""
    engine.gate.clear()
    task = asyncio.create_task(engine.read(read()))
    await asyncio.sleep(0.01)
    assert len(engine.requests) == 1
    assert not task.done()
    engine.gate.set()
    await task


async def test_cancelled_reads_are_aborted(engine: FakeEngine) -> None:
    """As the contract has it, and in no list when they ended by themselves; R4."""
    await engine.read(read(request_id="answered"))
    engine.gate.clear()
    task = asyncio.create_task(engine.read(read(request_id="cancelled")))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(engine.aborted) == ["cancelled"]


@pytest.mark.parametrize("settings", [SETTINGS, TWO_STEP], ids=["fused", "two steps"])
async def test_slowness_is_reported(settings: EngineSettings) -> None:
    """A read takes what it was told to take, in however many steps, and says so."""
    engine = FakeEngine(settings=settings, read_seconds=0.02)
    began = asyncio.get_running_loop().time()
    result = await engine.read(read())
    assert asyncio.get_running_loop().time() - began >= 0.02
    assert sum(step.seconds for step in result.engine_steps) == pytest.approx(0.02)


async def test_a_start_can_fail(engine: FakeEngine) -> None:
    """With the error it was given."""
    engine.start_error = EngineStartFailed("no such checkpoint")
    with pytest.raises(EngineStartFailed, match="no such checkpoint"):
        await engine.start()


@pytest.mark.parametrize("error", [ReadFailed("this one"), EngineDied("all of it")], ids=["read", "engine"])
async def test_reads_can_fail(engine: FakeEngine, error: EngineDied | ReadFailed) -> None:
    """With the error it was given, for as long as it has it."""
    engine.read_error = error
    with pytest.raises(EngineError, match=str(error)):
        await engine.read(read())
    engine.read_error = None
    await engine.read(read())


async def test_a_dead_engine_answers_nothing(engine: FakeEngine) -> None:
    """Not even what was under way when it died; R13."""
    await engine.check()
    engine.gate.clear()
    task = asyncio.create_task(engine.read(read()))
    await asyncio.sleep(0.01)
    engine.is_dead = True
    engine.gate.set()
    with pytest.raises(EngineDied):
        await task
    with pytest.raises(EngineDied):
        await engine.check()
    assert not engine.aborted


async def test_a_closed_engine_answers_nothing(engine: FakeEngine) -> None:
    """Closing may be repeated."""
    await engine.close()
    await engine.close()
    assert engine.is_closed
    with pytest.raises(EngineDied):
        await engine.read(read())
