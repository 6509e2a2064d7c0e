"""Starting, failing, stopping."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.canvas.errors import UnfitTokenizer
from app.canvas.plan import Planner
from app.canvas.site import RubricLimits
from app.lifecycle import Phase
from app.main import create_app
from app.settings import Settings
from app.startup import make_planner, planner_of
from app.tokenizer import CheckpointTokenizer
from engine.checkpoint import Checkpoint
from engine.fake import FakeEngine
from engine.protocol import Engine, EngineDied, EngineInfo, EngineStartFailed, ReadFailed, ReadRequest, ReadResult
from engine.settings import EngineSettings
from tests.app.service import PATIENCE_SECONDS, phase_of, request_body, serving, until, until_phase


@pytest.fixture
def failures() -> list[Phase]:
    """The phases in which the service reported that it can never serve again."""
    return []


@pytest.fixture
def app(settings: Settings, fake: FakeEngine, failures: list[Phase]) -> FastAPI:
    """The service over `fake`, its failures recorded."""
    return create_app(settings, lambda _: fake, failures.append)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is looked at all the time."""
    monkeypatch.setattr("app.startup.WATCH_SECONDS", 0.001)


async def test_the_engine_gets_its_part_of_the_settings(fake: FakeEngine, checkpoint: Path) -> None:
    """Every field under its own name, and the checkpoint that was found."""
    settings = Settings(
        engine="fake",
        revision="r",
        dtype="float32",
        canvas_length=32,
        fused_reads=0,
        bundle_tokens=512,
        max_model_len=1024,
        max_num_seqs=3,
        max_batched_tokens=2048,
        kv_cache_gib=2,
        block_size=64,
    )
    received: list[EngineSettings] = []

    def make(engine_settings: EngineSettings) -> Engine:
        received.append(engine_settings)
        return fake

    async with serving(create_app(settings, make)):
        await until(lambda: bool(received))
    expected = EngineSettings(
        checkpoint=Checkpoint(folder=checkpoint, revision="r"),
        name="onestep-demo",
        dtype="float32",
        canvas_length=32,
        fused_reads=False,
        bundle_tokens=512,
        max_model_len=1024,
        max_num_seqs=3,
        max_batched_tokens=2048,
        kv_cache_gib=2,
        block_size=64,
    )
    assert received == [expected]


def test_the_planner_gets_its_part_of_the_settings(tokenizer: CheckpointTokenizer) -> None:
    """Every limit under its own name; the tokenizer may have fewer labels than options are allowed."""
    settings = Settings(
        canvas_length=32,
        max_model_len=1024,
        branch_tokens=500,
        rubric_questions=5,
        rubric_options=6,
        rubric_text_chars=17,
        rubric_chars=80,
        rubric_depth=9,
        rubric_nodes=100,
    )
    limits = RubricLimits(max_questions=5, max_options=6, max_text_chars=17, max_chars=80, max_depth=9, max_nodes=100)
    planner = planner_of(settings, tokenizer)
    assert planner == Planner(
        tokenizer=tokenizer, max_model_len=1024, canvas_length=32, max_branch_tokens=500, rubric_limits=limits
    )
    assert planner.limits == replace(limits, max_labels=len(planner.alphabet))


def test_a_tokenizer_that_spells_no_canvas_is_found_at_once(checkpoint: Path) -> None:
    """Not at the first request: the labels are found, and a canvas of the length that is served is laid out."""
    found = Checkpoint(folder=checkpoint, revision="")
    assert "alphabet" in vars(make_planner(Settings(), found))
    with pytest.raises(UnfitTokenizer, match="5 tokens holds no line"):
        make_planner(Settings(canvas_length=5), found)


async def test_ready_only_after_a_real_decision(app: FastAPI, fake: FakeEngine) -> None:
    """R12: the engine is up, but the first read hangs: still starting. It answers: ready."""
    fake.gate.clear()
    async with serving(app) as client:
        await until(lambda: bool(fake.requests))
        assert await phase_of(client) == "starting"
        fake.gate.set()
        await until_phase(client, "ready")
    assert len(fake.requests) == 1


async def test_a_start_that_fails(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """The service says so to callers, probes and its owner, and keeps answering until it is ended."""
    fake.start_error = EngineStartFailed("no memory")
    async with serving(app) as client:
        await until(lambda: bool(failures))
        assert failures == [Phase.STARTING]
        assert await phase_of(client) == "failed"
        refused = await client.post("/decide", json=request_body())
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:onestep:problem:engine_dead")
    assert fake.is_closed


async def test_a_first_decision_that_fails(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """R12: an engine that cannot decide is no engine to serve with."""
    fake.logprobs = lambda *_: (float("nan"), 0.0)
    async with serving(app):
        await until(lambda: bool(failures))
    assert failures == [Phase.STARTING]


def refuse(_: EngineSettings) -> Engine:
    """A factory that must not be asked."""
    raise AssertionError("an engine was made")


async def test_a_checkpoint_without_a_tokenizer(
    settings: Settings, tmp_path: Path, failures: list[Phase], lines: list[dict[str, Any]]
) -> None:
    """Found before an engine is made; the log says what is wrong."""
    app = create_app(replace(settings, model=str(tmp_path)), refuse, failures.append)
    async with serving(app) as client:
        await until(lambda: bool(failures))
        assert await phase_of(client) == "failed"
    assert failures == [Phase.STARTING]
    (line,) = (line for line in lines if line["event"] == "engine failed")
    assert (line["error"], line["phase"]) == ("UnfitTokenizer", "starting")
    assert "tokenizer or chat template cannot be used" in line["reason"]


async def test_a_tokenizer_larger_than_its_model(
    app: FastAPI,
    fake: FakeEngine,
    failures: list[Phase],
    tokenizer: CheckpointTokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise could not be embedded: refused before the first read."""
    info = replace(await fake.start(), vocabulary_size=tokenizer.vocabulary_size - 1)

    async def start(_: FakeEngine) -> EngineInfo:
        return info

    monkeypatch.setattr(FakeEngine, "start", start)
    async with serving(app):
        await until(lambda: bool(failures))
    assert failures == [Phase.STARTING]
    assert not fake.requests


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_dies_while_nobody_asks(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """R13: noticed without a request; there is no way back."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        fake.is_dead = True
        await until(lambda: bool(failures))
        assert failures == [Phase.READY]
        assert await phase_of(client) == "failed"
        fake.is_dead = False
        assert (await client.post("/decide", json=request_body())).status_code == 503


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_dies_under_a_request(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """R13: that request gets 503, `/health` agrees at once, and the owner is told once, in time."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        fake.is_dead = True
        refused = await client.post("/decide", json=request_body())
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:onestep:problem:engine_dead")
        assert await phase_of(client) == "failed"
        await until(lambda: bool(failures))
    assert len(failures) == 1
    assert Phase.STARTING not in failures


async def test_stopping_while_the_engine_starts(settings: Settings, fake: FakeEngine, failures: list[Phase]) -> None:
    """R11: it does not wait for the engine, and is no failure."""
    fake.start_seconds = 10 * PATIENCE_SECONDS
    made: list[EngineSettings] = []

    def make(engine_settings: EngineSettings) -> Engine:
        made.append(engine_settings)
        return fake

    async with serving(create_app(settings, make, failures.append)) as client:
        await until(lambda: bool(made))
        assert await phase_of(client) == "starting"
    assert fake.is_closed
    assert failures == []


async def test_stopping_before_there_is_an_engine(settings: Settings, failures: list[Phase]) -> None:
    """R11: the checkpoint is not loaded yet; no engine is made any more."""
    async with serving(create_app(settings, refuse, failures.append)):
        pass
    assert failures == []


async def test_stopping_while_ready(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """The engine is closed, and its end is not taken for a failure."""
    async with serving(app) as client:
        await until_phase(client, "ready")
    assert fake.is_closed
    assert failures == []


async def test_a_start_is_logged(app: FastAPI, lines: list[dict[str, Any]]) -> None:
    """An operator sees what is served, as which decision function, and how long it took."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        fingerprint = (await client.get("/health")).json()["fingerprint"]
    (line,) = (line for line in lines if line["event"] == "ready")
    assert line["seconds"] > 0
    assert (line["model"], line["dtype"], line["fingerprint"]) == ("onestep-demo", "float32", fingerprint)


async def test_garbage_is_collected_again_after_the_end(app: FastAPI) -> None:
    """What start-up made is out of the collector's sight while the service runs, and not for longer."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("impatient")
async def test_a_death_that_only_a_request_notices(app: FastAPI, fake: FakeEngine, failures: list[Phase]) -> None:
    """R13: the owner of the process hears of it, though the engine still says of itself that it lives."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        fake.read_error = EngineDied("gone")
        assert (await client.post("/decide", json=request_body())).status_code == 503
        await until(lambda: bool(failures))
        assert await phase_of(client) == "failed"
    assert len(failures) == 1
    assert failures[0] is not Phase.STARTING


async def assert_given_up(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """A read that hangs, until its deadline."""
    assert (await client.post("/decide", json=request_body())).status_code == 200
    fake.gate.clear()
    before = len(fake.requests)
    assert (await client.post("/decide", json=request_body(policy={"deadline_ms": 300}))).status_code == 504
    assert len(fake.requests) > before


def probes(fake: FakeEngine) -> int:
    """How many reads were the service's own."""
    return sum(request.request_id.startswith("probe_") for request in fake.requests)


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_lives_but_does_not_answer(
    settings: Settings, fake: FakeEngine, failures: list[Phase], lines: list[dict[str, Any]]
) -> None:
    """R15: its processes run, and no read of anybody's ends, nor one of the service's own: it is taken for dead."""
    app = create_app(replace(settings, stall_seconds=1.0), lambda _: fake, failures.append)
    async with serving(app) as client:
        await until_phase(client, "ready")
        await assert_given_up(client, fake)
        await until(lambda: bool(failures))
        assert await phase_of(client) == "failed"
    assert failures == [Phase.READY]
    assert any(line.get("reason") == "the engine lives but does not answer" for line in lines)


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_answers_again(settings: Settings, fake: FakeEngine, failures: list[Phase]) -> None:
    """R15: one read that was given up is no reason; the service asks for itself, and even a failure is an answer."""
    app = create_app(replace(settings, stall_seconds=1.0), lambda _: fake, failures.append)
    async with serving(app) as client:
        await until_phase(client, "ready")
        await assert_given_up(client, fake)
        fake.gate.set()
        await until(lambda: probes(fake) > 0)
        assert await phase_of(client) == "ready"
        assert (await client.post("/decide", json=request_body())).status_code == 200
        await assert_given_up(client, fake)
        fake.read_error = ReadFailed("no")
        fake.gate.set()
        seen = probes(fake)
        await until(lambda: probes(fake) > seen)
        assert await phase_of(client) == "ready"
    assert failures == []


@pytest.mark.usefixtures("impatient")
async def test_an_engine_with_a_backlog(settings: Settings, fake: FakeEngine, failures: list[Phase]) -> None:
    """R15: it does not come to the service's own read in time, but to others' before it: it answers."""
    app = create_app(replace(settings, stall_seconds=1.0, deadline_seconds=60.0), lambda _: fake, failures.append)
    async with serving(app) as client:
        await until_phase(client, "ready")
        await assert_given_up(client, fake)
        answer, is_probed = fake.read, asyncio.Event()

        async def read(request: ReadRequest) -> ReadResult:
            if request.request_id.startswith("probe_"):
                is_probed.set()
                await asyncio.sleep(3600)
            return await answer(request)

        vars(fake)["read"] = read
        fake.gate.set()
        await until(is_probed.is_set)
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(20):
                assert (await client.post("/decide", json=request_body())).status_code == 200
                await asyncio.sleep(0.1)
    assert failures == []
