"""Step tables: which requests run in which engine step, planned by the real scheduler without a model."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cpu import ModelThreads
from engine.protocol import Fallback
from engine.report import EngineReport
from engine.settings import engine_arguments, engine_environment
from tests.engine.running import engine_settings

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

CANVAS_TOKENS = 16
SLOTS = 3
MAX_CANVAS_TOKENS = 64
BLOCK_SIZE = 32
MAX_MODEL_LEN = 256
BUDGET_TOKENS = 128
BLOCKS = 100
MAX_STEPS = 200


def make_config(checkpoint: Path, *, fused_reads: bool, **changed: Any) -> Any:
    """vLLM's configuration of the demo checkpoint, made as the engine makes it."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    made = engine_settings(
        checkpoint,
        fused_reads=fused_reads,
        canvas_length=MAX_CANVAS_TOKENS,
        bundle_tokens=BUDGET_TOKENS,
        max_model_len=MAX_MODEL_LEN,
        max_num_seqs=4,
        max_batched_tokens=BUDGET_TOKENS,
    )
    with mock.patch.dict(os.environ, engine_environment(1, ModelThreads(count=1, pinned_cpus=()))):
        config = AsyncEngineArgs(**(engine_arguments(made, "float32") | changed)).create_engine_config()
    config.cache_config.num_gpu_blocks = BLOCKS
    return config


@pytest.fixture(scope="module")
def configs(applied: tuple[str, ...], checkpoint: Path) -> dict[bool, Any]:
    """With fused reads on and off."""
    assert applied
    return {fused: make_config(checkpoint, fused_reads=fused) for fused in (True, False)}


def request(
    request_id: str,
    prompt_tokens: int,
    *,
    width: int = CANVAS_TOKENS,
    prompt: list[int] | None = None,
    hash_tokens: int = BLOCK_SIZE,
    **extra: Any,
) -> Any:
    """A read as the engine sends it, with a prompt like no other's unless one is given; `extra` changes its kind."""
    from vllm import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher
    from vllm.v1.request import Request

    read = {
        "diffusion_seed_canvas": [5] * width,
        "diffusion_canvas_length": width,
        "diffusion_max_steps": 1,
        "diffusion_read_only": True,
    }
    made = read | extra
    # A read of ours reports its slots, fewer than its canvas is wide.
    reported = min(width, SLOTS) if made["diffusion_max_steps"] == 1 else width
    params = SamplingParams(max_tokens=reported, extra_args=made)
    own_prompt = [sum(map(ord, request_id)), *range(1, prompt_tokens)] if prompt is None else prompt
    return Request(request_id, own_prompt, params, None, block_hasher=get_request_block_hasher(hash_tokens, sha256))


@dataclass
class Bench:
    """A scheduler with a model that settles every canvas in `denoising_steps` steps, and what it went through.

    Attributes:
        plans: per engine step, the tokens of each request in it.
        reports: of the requests that have ended.
    """

    scheduler: Any
    plans: list[dict[str, int]] = field(default_factory=list)
    reports: dict[str, EngineReport] = field(default_factory=dict)
    denoised: dict[str, int] = field(default_factory=dict)

    def add(self, *requests: Any) -> None:
        """Let requests arrive."""
        for one in requests:
            self.scheduler.add_request(one)

    def plan(self) -> Any:
        """Plan a step; what the plan says of a request's tokens is consistent."""
        planned = self.scheduler.schedule()
        if planned.total_num_scheduled_tokens:
            self.plans.append(dict(planned.num_scheduled_tokens))
        assert planned.total_num_scheduled_tokens == sum(planned.num_scheduled_tokens.values()) <= BUDGET_TOKENS
        for request_id, draft in planned.scheduled_spec_decode_tokens.items():
            assert len(draft) == self.width(request_id), "a canvas was cut"
        return planned

    def width(self, request_id: str) -> int:
        """The canvas a request asked for."""
        width: int = self.scheduler.requests[request_id].sampling_params.extra_args["diffusion_canvas_length"]
        return width

    def settles(self, request_id: str) -> bool:
        """Whether a canvas that has just been denoised is settled: after as many steps as were asked for."""
        self.denoised[request_id] = self.denoised.get(request_id, 0) + 1
        extra = self.scheduler.requests[request_id].sampling_params.extra_args
        return self.denoised[request_id] >= int(extra["diffusion_max_steps"])

    def finish(self, planned: Any) -> None:
        """End a planned step."""
        from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput

        ids = list(planned.num_scheduled_tokens)
        drafts = planned.scheduled_spec_decode_tokens
        sampled = [
            [7] * self.scheduler.requests[id].max_tokens
            if id in drafts and id in self.scheduler.requests and self.settles(id)
            else []
            for id in ids
        ]
        result = ModelRunnerOutput(
            req_ids=ids, req_id_to_index={id: i for i, id in enumerate(ids)}, sampled_token_ids=sampled
        )
        outputs = self.scheduler.update_from_output(planned, result)
        self.scheduler.update_draft_token_ids(DraftTokenIds(ids, [[7] * BUDGET_TOKENS for _ in ids]))
        for client in outputs.values():
            for output in client.outputs:
                if output.finish_reason is not None:
                    self.reports[output.request_id] = EngineReport.from_params(output.kv_transfer_params)

    def step(self) -> None:
        """Plan a step and end it."""
        self.finish(self.plan())

    def run(self) -> None:
        """Step until nothing is left."""
        for _ in range(MAX_STEPS):
            if not self.scheduler.has_unfinished_requests():
                return
            self.step()
        raise AssertionError("it does not come to an end")

    def steps(self) -> dict[str, list[int]]:
        """Per finished request, the steps it took part in."""
        return {id: [index for index, _ in report.steps] for id, report in self.reports.items()}

    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        free: int = self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
        return free

    def is_empty(self) -> bool:
        """Nothing is left of anybody: no request, no report, no block."""
        scheduler = self.scheduler
        left = (scheduler.requests, scheduler.running, scheduler._reports)
        return not any(left) and not len(scheduler.waiting) and self.free_blocks() == self.all_blocks

    @property
    def all_blocks(self) -> int:
        """Every block but the null block."""
        blocks: int = self.scheduler.kv_cache_manager.block_pool.num_gpu_blocks
        return blocks - 1


def make_bench(config: Any, blocks: int = BLOCKS, *, window: int | None = None) -> Bench:
    """The scheduler class that vLLM takes from our arguments, over one layer's KV cache.

    With a window there is a second layer that sees no further back, in blocks half as long, as in the real model.
    """
    import torch
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import init_none_hash
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, SlidingWindowSpec
    from vllm.v1.structured_output import StructuredOutputManager

    init_none_hash(sha256)
    sizes = {"num_kv_heads": 1, "head_size": 8, "dtype": torch.float32}
    groups = [KVCacheGroupSpec(["full"], FullAttentionSpec(block_size=BLOCK_SIZE, **sizes))]
    if window is not None:
        sliding = SlidingWindowSpec(block_size=BLOCK_SIZE // 2, sliding_window=window, **(sizes | {"num_kv_heads": 2}))
        groups.append(KVCacheGroupSpec(["sliding"], sliding))
    return Bench(
        config.scheduler_config.get_scheduler_cls()(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(blocks, [], groups),
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK_SIZE,
            hash_block_size=BLOCK_SIZE if window is None else BLOCK_SIZE // 2,
            log_stats=True,
        )
    )


@pytest.fixture
def bench(configs: dict[bool, Any]) -> Bench:
    """With fused reads."""
    return make_bench(configs[True])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Requests by the engine step before which they arrive; the steps each takes part in, and why it fell back.

    A request is its prompt's length, or that and what is special about it.
    """

    id: str
    arrivals: dict[int, dict[str, int | tuple[int, dict[str, Any]]]]
    fused: dict[str, list[int]]
    two_step: dict[str, list[int]]
    fallbacks: dict[str, Fallback] = field(default_factory=dict)


def special(prompt_tokens: int, **extra: Any) -> tuple[int, dict[str, Any]]:
    """A request that is not just any read."""
    return prompt_tokens, extra


CASES = [
    Case(id="one read", arrivals={1: {"a": 20}}, fused={"a": [1]}, two_step={"a": [1, 2]}),
    Case(id="a prompt of one token", arrivals={1: {"a": 1}}, fused={"a": [1]}, two_step={"a": [1, 2]}),
    Case(
        id="two together",
        arrivals={1: {"a": 20, "b": 30}},
        fused={"a": [1], "b": [1]},
        two_step={"a": [1, 2], "b": [1, 2]},
    ),
    Case(
        id="one step later",
        arrivals={1: {"a": 20}, 2: {"b": 30}},
        fused={"a": [1], "b": [2]},
        two_step={"a": [1, 2], "b": [2, 3]},
    ),
    Case(id="prompt and canvas fill a step", arrivals={1: {"a": 112}}, fused={"a": [1]}, two_step={"a": [1, 2]}),
    Case(
        id="one token over the budget",
        arrivals={1: {"a": 113}},
        fused={"a": [1, 2]},
        two_step={"a": [1, 2]},
        fallbacks={"a": Fallback.BUDGET},
    ),
    Case(
        id="a prompt that fills a step",
        arrivals={1: {"a": 128}},
        fused={"a": [1, 2]},
        two_step={"a": [1, 2]},
        fallbacks={"a": Fallback.BUDGET},
    ),
    Case(id="a prompt in two chunks", arrivals={1: {"a": 129}}, fused={"a": [1, 2]}, two_step={"a": [1, 2, 3]}),
    Case(
        id="prompt and canvas fill the context",
        arrivals={1: {"a": 240}},
        fused={"a": [1, 2]},
        two_step={"a": [1, 2, 3]},
    ),
    Case(
        id="a canvas keeps its place from the prompts behind it",
        arrivals={1: {"a": 60, "b": 150}},
        fused={"a": [1], "b": [1, 2]},
        two_step={"a": [1, 2], "b": [1, 2, 3]},
    ),
    Case(
        id="the budget is spent in the order of arrival",
        arrivals={1: {"a": 60, "b": 40}},
        fused={"a": [1], "b": [1, 2]},
        two_step={"a": [1, 2], "b": [1, 2]},
        fallbacks={"b": Fallback.BUDGET},
    ),
    Case(
        id="different widths",
        arrivals={1: {"a": special(20, width=4), "b": special(20, width=33), "c": special(20, width=1)}},
        fused={"a": [1], "b": [1], "c": [1]},
        two_step={"a": [1, 2], "b": [1, 2], "c": [1, 2]},
    ),
    Case(
        id="more than run at once",
        arrivals={1: dict.fromkeys("abcde", 8)},
        fused={"a": [1], "b": [1], "c": [1], "d": [1], "e": [2]},
        two_step={"a": [1, 2], "b": [1, 2], "c": [1, 2], "d": [1, 2], "e": [3, 4]},
    ),
    Case(
        id="idle steps do not count",
        arrivals={1: {"a": 20}, 6: {"b": 20}},
        fused={"a": [1], "b": [2]},
        two_step={"a": [1, 2], "b": [3, 4]},
    ),
    Case(
        id="several denoising steps",
        arrivals={1: {"a": special(20, diffusion_max_steps=3)}},
        fused={"a": [1, 2, 3, 4]},
        two_step={"a": [1, 2, 3, 4]},
        fallbacks={"a": Fallback.INELIGIBLE},
    ),
    Case(
        id="fused, multi-step and late in one batch",
        arrivals={1: {"a": special(20, diffusion_max_steps=2), "b": 20}, 2: {"c": 20}},
        fused={"a": [1, 2, 3], "b": [1], "c": [2]},
        two_step={"a": [1, 2, 3], "b": [1, 2], "c": [2, 3]},
        fallbacks={"a": Fallback.INELIGIBLE},
    ),
]


def arrive(bench: Bench, arrivals: dict[str, int | tuple[int, dict[str, Any]]]) -> None:
    """Add what arrives before a step."""
    for request_id, asked in arrivals.items():
        prompt_tokens, extra = asked if isinstance(asked, tuple) else (asked, {})
        bench.add(request(request_id, prompt_tokens, **extra))


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "two-step"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_engine_steps(configs: dict[bool, Any], case: Case, fused: bool) -> None:
    """Each request takes the steps it should, reports them with their durations, and leaves nothing."""
    bench = make_bench(configs[fused])
    for index in range(1, 10):
        arrive(bench, case.arrivals.get(index, {}))
        bench.step()
    assert bench.steps() == (case.fused if fused else case.two_step)
    fallbacks = {id: report.fallback for id, report in bench.reports.items() if report.fallback is not None}
    assert fallbacks == (case.fallbacks if fused else {})
    assert {id for id, report in bench.reports.items() if report.is_fused} == (
        case.fused.keys() - case.fallbacks.keys() if fused else set()
    )
    # One step, one duration, for whoever was in it.
    durations = dict(step for report in bench.reports.values() for step in report.steps)
    assert all(0 < durations[index] == seconds for r in bench.reports.values() for index, seconds in r.steps)
    assert bench.is_empty()


def test_one_token_left_after_a_cache_hit(bench: Bench) -> None:
    """The prompt's last token and the canvas, in one step."""
    prompt = list(range(1, 66))
    bench.add(request("first", 0, prompt=prompt))
    bench.run()
    bench.add(request("again", 0, prompt=prompt))
    bench.run()
    assert bench.plans == [{"first": 65 + CANVAS_TOKENS}, {"again": 1 + CANVAS_TOKENS}]


def test_a_canvas_over_the_context_falls_back(bench: Bench) -> None:
    """vLLM then cuts it, as it does without us. `VllmEngine` refuses such a read before it gets here."""
    bench.add(request("a", MAX_MODEL_LEN - CANVAS_TOKENS + 1))
    bench.step()
    bench.step()
    planned = bench.scheduler.schedule()
    assert bench.scheduler._reports["a"].fallback is Fallback.CONTEXT
    assert len(planned.scheduled_spec_decode_tokens["a"]) == CANVAS_TOKENS - 1


def test_no_free_block_falls_back(configs: dict[bool, Any]) -> None:
    """Three blocks: both prompts and one canvas. The other canvas runs when the first read has given its back."""
    bench = make_bench(configs[True], blocks=1 + 3)
    bench.add(request("a", 32), request("b", 32))
    bench.run()
    assert bench.steps() == {"a": [1], "b": [1, 2]}
    assert {id: report.fallback for id, report in bench.reports.items()} == {"a": None, "b": Fallback.BLOCKS}
    assert bench.is_empty()


def test_preempted_and_resumed(configs: dict[bool, Any]) -> None:
    """Two blocks: no canvas finds one, so a read is sent back; it runs its prompt again later, and is fused then."""
    bench = make_bench(configs[True], blocks=1 + 2)
    bench.add(request("a", 32), request("b", 32))
    bench.run()
    assert bench.plans == [{"a": 32, "b": 32}, {"a": CANVAS_TOKENS}, {"b": 32 + CANVAS_TOKENS}]
    assert {id: report.fallback for id, report in bench.reports.items()} == {"a": Fallback.BLOCKS, "b": None}
    assert bench.reports["b"].is_fused
    assert bench.is_empty()


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "two-step"])
@pytest.mark.parametrize("when", ["between steps", "during a step"])
def test_an_aborted_read_leaves_nothing(configs: dict[bool, Any], when: str, fused: bool) -> None:
    """Neither its report nor itself nor a block; the read beside it is none the wiser; R16."""
    from vllm.v1.request import RequestStatus

    bench = make_bench(configs[fused])
    bench.add(request("a", 20), request("b", 20))
    planned = bench.plan() if when == "during a step" else None
    bench.scheduler.finish_requests("a", RequestStatus.FINISHED_ABORTED)
    if planned is not None:
        bench.finish(planned)
    bench.run()
    assert bench.steps() == {"b": [1] if fused else [1, 2]}
    assert bench.is_empty()


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "two-step"])
def test_a_draft_that_does_not_fit_whole_waits(configs: dict[bool, Any], fused: bool) -> None:
    """vLLM would cut it to what is left of the step; `Bench.plan` checks every draft."""
    bench = make_bench(configs[fused])
    bench.add(*(request(name, 30, width=60, diffusion_max_steps=2) for name in "abcd"))
    bench.run()
    assert {len(steps) for steps in bench.steps().values()} == {3}
    assert bench.is_empty()


def test_new_blocks_reach_the_worker(bench: Bench) -> None:
    """A new request's in its block ids, a running one's in what is appended: as many as its tokens need."""
    bench.add(request("new", 31), request("chunked", 150))
    first = bench.plan()
    (new, chunked) = first.scheduled_new_reqs
    assert [len(group) for group in new.block_ids] == [2]
    assert [len(group) for group in chunked.block_ids] == [3]
    bench.finish(first)
    second = bench.plan()
    assert second.scheduled_cached_reqs.req_ids == ["chunked"]
    assert len(chunked.block_ids[0]) + len(second.scheduled_cached_reqs.new_block_ids[0][0]) == 6  # 166 tokens


waves = st.lists(
    st.lists(
        st.tuples(
            st.integers(1, 200),  # prompt tokens
            st.integers(1, 40),  # width
            st.sampled_from([1, 1, 1, 2]),  # denoising steps
            st.sampled_from(["", "", "", "planned", "between"]),  # aborted when
        ),
        max_size=5,
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(waves=waves, blocks=st.integers(9, 40))
def test_nothing_is_lost_whatever_comes(
    configs: dict[bool, Any], waves: list[list[tuple[int, int, int, str]]], blocks: int
) -> None:
    """Reads of all sizes, aborts at any time, few blocks: every read that is not aborted ends, and nothing is left."""
    from vllm.v1.request import RequestStatus

    bench = make_bench(configs[True], blocks=1 + blocks)
    expected = set()
    for wave, reads in enumerate(waves):
        ids = [f"{wave}-{number}" for number in range(len(reads))]
        aborted = dict(zip(ids, (when for *_, when in reads), strict=True))
        for request_id, (prompt_tokens, width, steps, _) in zip(ids, reads, strict=True):
            bench.add(request(request_id, prompt_tokens, width=width, diffusion_max_steps=steps))
        expected |= {request_id for request_id, when in aborted.items() if not when}
        planned = bench.plan()
        for when in ("planned", "between"):
            running = [id for id, at in aborted.items() if at == when and id in bench.scheduler.requests]
            bench.scheduler.finish_requests(running, RequestStatus.FINISHED_ABORTED)
            if when == "planned":
                bench.finish(planned)
    bench.run()
    assert expected <= bench.reports.keys()
    assert bench.is_empty()


WINDOW = 48


def assert_tails_see_their_window(bench: Bench, planned: Any) -> None:
    """In the step of a draft, no block is gone that the first query of a copied tail looks back to."""
    sliding = bench.scheduler.kv_cache_manager.coordinator.single_type_managers[1]
    for request_id in planned.scheduled_spec_decode_tokens:
        prompt_tokens = bench.scheduler.requests[request_id].num_prompt_tokens
        tail_begins = prompt_tokens // BLOCK_SIZE * BLOCK_SIZE
        first = max(0, tail_begins - WINDOW + 1) // sliding.block_size
        needed = sliding.req_to_blocks[request_id][first : -(-prompt_tokens // sliding.block_size)]
        assert not any(block.is_null for block in needed)


@pytest.mark.parametrize("prompt_tokens", range(120, 200))
def test_tails_keep_their_window(configs: dict[bool, Any], prompt_tokens: int) -> None:
    """Of a chunked prompt and of one that falls back: further branches start from the tail again."""
    bench = make_bench(configs[True], window=WINDOW)
    arriving = {"a": (prompt_tokens, 40), "b": (90, CANVAS_TOKENS), "c": (prompt_tokens, 7)}
    for name, (tokens, width) in arriving.items():
        bench.add(request(name, tokens, width=width, hash_tokens=BLOCK_SIZE // 2))
    while bench.scheduler.has_unfinished_requests():
        planned = bench.plan()
        assert_tails_see_their_window(bench, planned)
        bench.finish(planned)
    assert {report.fallback for report in bench.reports.values()} <= {None, Fallback.BUDGET}
    assert bench.is_empty()


REFUSED = {
    "pipeline parallelism": ("parallel_config", "pipeline_parallel_size", 2),
    "tensor parallelism": ("parallel_config", "tensor_parallel_size", 2),
    "prefill context parallelism": ("parallel_config", "prefill_context_parallel_size", 2),
    "micro-batching": ("parallel_config", "enable_dbo", True),
    "fast prefill": ("cache_config", "kv_sharing_fast_prefill", True),
    "decode context parallelism": ("parallel_config", "decode_context_parallel_size", 2),
    "a KV connector": (None, "kv_transfer_config", object()),
    "KV cache offloading": ("cache_config", "kv_offloading_size", 1.0),
    "async scheduling": ("scheduler_config", "async_scheduling", True),
    "speculative decoding": (None, "speculative_config", object()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fused_is_refused(configs: dict[bool, Any], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By a message that names it and the way out; an operator reads it."""
    from engine.scheduler import Unfusable, require_fusable

    part, setting, value = REFUSED[name]
    require_fusable(configs[True])
    owner = configs[True] if part is None else getattr(configs[True], part)
    monkeypatch.setitem(owner.__dict__, setting, value)
    with pytest.raises(Unfusable, match=f"{name}.*DECIDE_FUSED_READS=0"):
        require_fusable(configs[True])


def test_the_scheduler_refuses_too(configs: dict[bool, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts vLLM with this class past our engine; and only where reads are to be fused."""
    from engine.scheduler import Unfusable

    for fused in (True, False):
        monkeypatch.setitem(configs[fused].cache_config.__dict__, "kv_offloading_size", 1.0)
    with pytest.raises(Unfusable, match="KV cache offloading"):
        make_bench(configs[True])


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the scheduler waited for more requests, each time it did."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def sent(request_id: str, seconds_ago: float) -> Any:
    """A read that was sent so long ago."""
    made = request(request_id, 40)
    made.arrival_time = time.time() - seconds_ago
    return made


def test_an_idle_engine_waits_a_moment_for_more_reads(bench: Bench, pauses: list[float]) -> None:
    """Again after each that was sent just now, so that all of them share a step; not for what is full already."""
    for number in range(4):
        bench.add(sent(f"read {number}", 0))
    assert 0 < sum(pauses) < 0.002
    assert len(pauses) == 3  # the fourth fills the step
    bench.step()
    assert len(bench.plans[0]) >= 2


def test_no_step_waits_for_long(bench: Bench, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come, one after another; the next step may wait again."""
    monkeypatch.setattr(bench.scheduler, "max_num_running_reqs", 100)
    for number in range(20):
        bench.add(sent(f"read {number}", 0))
    assert len(pauses) == 4
    bench.run()
    bench.add(sent("another", 0))
    assert len(pauses) == 5


def test_what_has_waited_already_is_not_kept_waiting(bench: Bench, pauses: list[float]) -> None:
    """A backlog of a step that ran meanwhile."""
    for number in range(3):
        bench.add(sent(f"read {number}", 0.01))
    assert pauses == []


def test_a_busy_engine_does_not_wait(bench: Bench, pauses: list[float]) -> None:
    """Requests that arrive while others run join the next step anyway."""
    bench.add(request("long", 200))  # longer than a step
    bench.step()
    assert bench.scheduler.running
    pauses.clear()
    bench.add(sent("read", 0))
    assert pauses == []


def test_vllms_own_path_does_not_wait(configs: dict[bool, Any], pauses: list[float]) -> None:
    """With fused reads off nothing is changed."""
    make_bench(configs[False]).add(sent("read", 0))
    assert pauses == []
