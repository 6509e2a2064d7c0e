"""Plans: a rubric laid out, meeting states."""

from __future__ import annotations

from typing import Any

import pytest

from app.canvas.errors import Problem, PromptTooLong, RubricRejected, UnfitTokenizer
from app.canvas.noise import seed_of
from app.canvas.plan import Plan, Planner, label_token_ids
from app.canvas.rubric import RubricLimits
from app.tokenizer import CheckpointTokenizer
from engine.protocol import MAX_LABELS_PER_READ
from tests.app.canvas.toy_tokenizer import ToyTokenizer
from tests.app.conftest import Decode
from tests.cases import LETTERS, REFILL, TOPIC, rubric


def planner_of(tokenizer: CheckpointTokenizer, *, max_model_len: int = 4096, canvas_length: int = 64) -> Planner:
    """A planner with other limits than the session's."""
    return Planner(tokenizer=tokenizer, max_model_len=max_model_len, canvas_length=canvas_length, max_text_chars=100)


@pytest.fixture(scope="module")
def plan(planner: Planner) -> Plan:
    """A plan of two questions with 4 and 2 options."""
    return planner.plan(rubric(topic=TOPIC, refill=REFILL), "Be strict.")


def test_a_plan(plan: Plan, decode: Decode) -> None:
    """Questions in order, labels that do not repeat, one canvas, the system turn, a validator for its decisions."""
    assert [asked.name for asked in plan.questions] == ["topic", "refill"]
    assert [[label.text for label in own] for own in plan.labels] == [["A", "B", "C", "D"], ["E", "F"]]
    assert len(plan.canvas.slots) == 2
    assert decode(plan.rubric_token_ids).startswith("Be strict.\n\nRead the conversation")
    assert plan.validator.is_valid({"topic": "billing", "refill": True})
    assert not plan.validator.is_valid({"topic": "weather", "refill": True})


def test_labels_in_the_prompt_are_the_tokens_read(plan: Plan) -> None:
    """Every label the engine is asked about stands before its option in the prompt."""
    token_ids = [token_id for own in plan.labels for token_id in label_token_ids(own)]
    assert len(set(token_ids)) == 6
    assert set(token_ids) <= set(plan.rubric_token_ids)


def test_limits(planner: Planner) -> None:
    """S11: the demo tokenizer has 26 labels and lays 14 questions on 64 tokens."""
    assert planner.limits == RubricLimits(max_questions=14, max_options=26, max_text_chars=4096)


def test_limits_follow_the_canvas(tokenizer: CheckpointTokenizer) -> None:
    """A wider canvas holds more questions, never more than 64; a narrower one fewer."""
    widest, narrow = (planner_of(tokenizer, canvas_length=length) for length in (1024, 10))
    assert (widest.limits.max_questions, narrow.limits.max_questions) == (64, 2)


def test_no_read_asks_for_more_labels_than_an_engine_reports(tokenizer: CheckpointTokenizer) -> None:
    """S11: a rubric of the most questions with the most options each still is one read."""
    planner = planner_of(tokenizer, canvas_length=1024, max_model_len=100_000)
    most = planner.plan(rubric(**{f"q{n}": LETTERS for n in range(planner.limits.max_questions)}), None)
    assert len({label.token_id for own in most.labels for label in own}) <= MAX_LABELS_PER_READ


def test_a_rubric_over_the_limits_is_rejected(planner: Planner) -> None:
    """At the limit a plan, one more is refused."""
    asked: dict[str, Any] = {f"q{n}": REFILL for n in range(14)}
    assert len(planner.plan(rubric(**asked), None).questions) == 14
    with pytest.raises(RubricRejected):
        planner.plan(rubric(**asked, another=REFILL), None)


def test_a_tokenizer_without_a_fitting_canvas_is_found_by_the_limits(tokenizer: CheckpointTokenizer) -> None:
    """Asking for the limits is the start-up check."""
    with pytest.raises(UnfitTokenizer):
        _ = planner_of(tokenizer, canvas_length=5).limits


def test_a_prompt_at_the_limit(planner: Planner, tokenizer: CheckpointTokenizer, plan: Plan) -> None:
    """Prompt and canvas together may have `max_model_len` tokens, and not one more."""
    needed = len(planner.seed_read(plan, "Hello.", None).prompt_token_ids) + plan.canvas.width
    fitting, tight = (planner_of(tokenizer, max_model_len=length) for length in (needed, needed - 1))
    assert len(fitting.seed_read(plan, "Hello.", None).canvas_token_ids) == plan.canvas.width
    with pytest.raises(PromptTooLong) as refusal:
        tight.seed_read(plan, "Hello.", None)
    assert refusal.value.problem == Problem(
        pointer="/state",
        code="prompt_too_long",
        message=f"prompt and canvas need {needed} tokens, {needed - 1} are served",
    )


def test_a_rubric_that_leaves_no_room(planner: Planner, tokenizer: CheckpointTokenizer, plan: Plan) -> None:
    """It is the rubric's fault if not even an empty state fits, and it is known without one."""
    needed = len(planner.seed_read(plan, "", None).prompt_token_ids) + plan.canvas.width
    fitting, tight = (planner_of(tokenizer, max_model_len=length) for length in (needed, needed - 1))
    assert fitting.plan(rubric(topic=TOPIC, refill=REFILL), "Be strict.")
    with pytest.raises(PromptTooLong) as refusal:
        tight.plan(rubric(topic=TOPIC, refill=REFILL), "Be strict.")
    assert refusal.value.problem.pointer == "/rubric"


def test_the_default_seed_derives_from_the_prompt(planner: Planner, plan: Plan) -> None:
    """R17: a repeat is a repeat, another state another seed."""
    first, again, other = (planner.seed_read(plan, state, None) for state in ("Hello.", "Hello.", "Bye."))
    assert first == again
    assert first.seed == seed_of(first.prompt_token_ids) != other.seed


def test_a_seed_decides_the_noise_alone(planner: Planner, plan: Plan) -> None:
    """The prompt stays; the canvas differs at its slots."""
    first, other = (planner.seed_read(plan, "Hello.", seed) for seed in (0, 1))
    assert (first.seed, other.seed) == (0, 1)
    assert first.prompt_token_ids == other.prompt_token_ids
    assert first.canvas_token_ids != other.canvas_token_ids
    assert first.canvas_token_ids == plan.canvas.with_noise(0, planner.tokenizer.vocabulary_size)


def test_the_same_request_is_the_same_tokens(planner: Planner, tokenizer: CheckpointTokenizer, plan: Plan) -> None:
    """R17: whichever planner lays it out, and whatever it laid out before."""
    fresh = planner_of(tokenizer)
    for count in (5, 1, 2):
        fresh.plan(rubric(**{f"q{n}": REFILL for n in range(count)}), None)
    again = fresh.plan(rubric(topic=TOPIC, refill=REFILL), "Be strict.")
    assert fresh.seed_read(again, "Hello.", None) == planner.seed_read(plan, "Hello.", None)


def test_any_tokenizer_that_keeps_letters_will_do() -> None:
    """A planner knows its tokenizer through the protocol alone."""
    planner = Planner(tokenizer=ToyTokenizer(), max_model_len=1000, canvas_length=20, max_text_chars=100)
    plan = planner.plan(rubric(refill=REFILL), None)
    read = planner.seed_read(plan, "", 1)
    assert planner.limits.max_questions == 3
    assert read.prompt_token_ids[:1] + read.prompt_token_ids[-4:] == (3, 2, 4, 2, 5)
    assert plan.canvas.width == len("1: A\n") + 2
