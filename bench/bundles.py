"""What bundles save over single fused reads: several draws of one canvas, and isolated questions about one state.

All arms ask the same fused engine. Every job has a new prompt, so the prefix cache spares only what reads of one job
share: single reads of one job do share their prompt's full blocks. "Uncached" arms do not, each read has a salt of its
own: as without a prefix cache, or on replicas that do not share one.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import replace

from bench.arms import make_arm
from bench.command import Command, positive
from bench.engines import EngineOptions, add_engine_options, running_engine
from bench.ratio import Ratio, median, paired_ratio
from bench.synthetic_reads import SyntheticReads
from bench.table import Row, milliseconds, render_table
from bench.turn import Arm, Job, Series, count_cached_tokens, take_turns
from engine.packing import alone
from engine.protocol import Engine, ReadRequest

DRAWS, DRAW_PROMPT_TOKENS = 4, (32, 188, 1250)
QUESTIONS, QUESTION_TOKENS, STATE_TOKENS = 16, 40, 1000
CLIENTS_OF_QUESTIONS = (1, 4)

BUNDLE, BUNDLE_AGAIN = "bundle", "bundle again"
SINGLE, SINGLE_AGAIN = "single", "single again"
IN_TURN, TOGETHER = "singles in turn", "singles together"
IN_TURN_UNCACHED, TOGETHER_UNCACHED = "singles in turn, uncached", "singles together, uncached"

DRAWS_TITLE = (
    f"One bundle of {DRAWS} draws against one single read, {{dtype}}, {{turns}} turns; ratios are medians over turns"
)
DRAWS_HEADER = (
    "prompt",
    "single ms",
    "bundle ms",
    "bundle / single",
    "single again / single",
    "steps a bundle",
    "cached tokens",
)
QUESTIONS_TITLE = (
    f"One bundle of {QUESTIONS} isolated questions of {QUESTION_TOKENS} tokens about {STATE_TOKENS:,} tokens, against "
    f"{QUESTIONS} single reads, {{dtype}}, {{turns}} turns; ratios are medians over turns"
)
QUESTIONS_HEADER = ("clients", "arm", "ms", "bundle / this", "steps a job", "fused reads a job", "cached tokens a job")


def add_options(parser: ArgumentParser) -> None:
    """Declare the options."""
    add_engine_options(parser)
    parser.add_argument("--turns", type=positive, default=48, help="how often the arms of a row take turns")


async def measure_bundles(arguments: Namespace) -> str:
    """Both tables."""
    options = EngineOptions.of(arguments)
    turns: int = arguments.turns
    async with running_engine(options, fused=True) as engine:
        draws = [await draws_row(engine, prompt_tokens, turns) for prompt_tokens in DRAW_PROMPT_TOKENS]
        questions = [row for clients in CLIENTS_OF_QUESTIONS for row in await questions_rows(engine, clients, turns)]
    return "\n\n".join(
        (
            render_table(DRAWS_TITLE.format(dtype=options.dtype, turns=turns), DRAWS_HEADER, draws),
            render_table(QUESTIONS_TITLE.format(dtype=options.dtype, turns=turns), QUESTIONS_HEADER, questions),
        )
    )


def draw_arms(engine: Engine, prompt_tokens: int) -> tuple[Arm, ...]:
    """A bundle of draws, a single read behind as long a prompt, and the same once more: what noise looks like."""
    bundle = SyntheticReads(prompt_tokens=prompt_tokens, branches=DRAWS)
    single = SyntheticReads(prompt_tokens=prompt_tokens)
    return (
        make_arm(BUNDLE, engine, bundle, 0),
        make_arm(SINGLE, engine, single, 1),
        make_arm(SINGLE_AGAIN, engine, single, 2),
    )


def question_arms(engine: Engine, seed: int) -> tuple[Arm, ...]:
    """A bundle of questions, the same once more, and the same questions as single reads in two ways."""
    questions = SyntheticReads(prompt_tokens=STATE_TOKENS, branches=QUESTIONS, suffix_tokens=QUESTION_TOKENS, seed=seed)
    return (
        make_arm(BUNDLE, engine, questions, 0),
        make_arm(BUNDLE_AGAIN, engine, questions, 1),
        Arm(name=IN_TURN, engine=engine, make_job=lambda number: Job(requests=alone(questions.read(number, 2)))),
        Arm(
            name=TOGETHER,
            engine=engine,
            make_job=lambda number: Job(requests=alone(questions.read(number, 3)), is_sent_together=True),
        ),
        Arm(
            name=IN_TURN_UNCACHED,
            engine=engine,
            make_job=lambda number: Job(requests=uncached(alone(questions.read(number, 4)))),
        ),
        Arm(
            name=TOGETHER_UNCACHED,
            engine=engine,
            make_job=lambda number: Job(requests=uncached(alone(questions.read(number, 5))), is_sent_together=True),
        ),
    )


def uncached(requests: Iterable[ReadRequest]) -> tuple[ReadRequest, ...]:
    """The same requests, none of which finds another's prompt in the prefix cache."""
    return tuple(replace(request, cache_salt=request.request_id) for request in requests)


async def draws_row(engine: Engine, prompt_tokens: int, turns: int) -> Row:
    """The row of one prompt length."""
    series = await take_turns(draw_arms(engine, prompt_tokens), turns=turns, clients=1)
    bundle, single = series[BUNDLE], series[SINGLE]
    return (
        f"{prompt_tokens:,} tokens",
        milliseconds(single.median_seconds),
        milliseconds(bundle.median_seconds),
        _ratio(bundle, single),
        _ratio(series[SINGLE_AGAIN], single),
        f"{bundle.engine_steps / turns:.2f}",
        count_cached_tokens(series.values()),
    )


async def questions_rows(engine: Engine, clients: int, turns: int) -> list[Row]:
    """The rows of one number of clients, one an arm."""
    series = await take_turns(question_arms(engine, seed=clients), turns=turns, clients=clients)
    jobs = turns * clients
    return [
        (
            clients,
            name,
            milliseconds(one.median_seconds),
            "" if one is series[BUNDLE] else _ratio(series[BUNDLE], one),
            f"{one.engine_steps / jobs:.2f}",
            f"{one.fused_reads / jobs:.2f}",
            round(count_cached_tokens([one]) / jobs),
        )
        for name, one in series.items()
    ]


def _ratio(ours: Series, theirs: Series) -> Ratio:
    return paired_ratio(ours.turn_seconds, theirs.turn_seconds, median)


BUNDLES = Command(
    about="bundles against the single reads they replace", add_options=add_options, measure=measure_bundles
)
