"""Bodies of requests and answers, as callers see them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.canvas.decision import Answer, Outcome
from app.canvas.json import Json, JsonScalar
from app.canvas.kinds.boolean import Boolean
from app.canvas.kinds.choice import Choice
from app.canvas.kinds.probability import Probability
from app.canvas.kinds.score import Score
from app.canvas.kinds.selection import Selection
from app.canvas.option import make_option
from app.canvas.plan import Layout, Order
from app.canvas.policy import Policy, StopReason
from app.canvas.pool import Pool
from app.canvas.question import Kind, Question, Reading
from app.decisions import Decision, DecisionRequest, ServedModel
from app.errors import SchemaRejected
from app.plans import PlanRequest
from app.wire import decide_response, parse_decide_request
from engine.protocol import EngineStep, Fallback, ReadResult
from tests.app.canary import CANARY

RUBRIC = {"anything": [CANARY]}


def body(**fields: Any) -> dict[str, Any]:
    """A request body with these fields over the required ones."""
    return {"state": "s", "rubric": RUBRIC, **fields}


def problems_of(sent: Any) -> list[tuple[str, str, str]]:
    """Pointer, code and message of everything wrong with a body."""
    with pytest.raises(SchemaRejected) as refusal:
        parse_decide_request(sent)
    return [(problem.pointer, problem.code, problem.message) for problem in refusal.value.problems]


@dataclass(frozen=True)
class Taken:
    id: str
    body: dict[str, Any]
    request: DecisionRequest


ASKED = PlanRequest(rubric=RUBRIC)
TAKEN = (
    Taken("the least", body(), DecisionRequest(state="s", asked=ASKED)),
    Taken("an empty policy", body(policy={}), DecisionRequest(state="s", asked=ASKED)),
    Taken("no instructions", body(instructions=None), DecisionRequest(state="s", asked=ASKED)),
    Taken("an object", body(state={"a": 1}), DecisionRequest(state={"a": 1}, asked=ASKED)),
    Taken("messages", body(state=[1]), DecisionRequest(state=[1], asked=ASKED)),
    # Any JSON: what is wrong with a rubric is said by the canvas, all at once.
    Taken("a rubric that is none", body(rubric=None), DecisionRequest(state="s", asked=PlanRequest(rubric=None))),
    Taken(
        "every default",
        body(policy={"max_reads": None, "layout": "joint", "order": "rubric_first", "rotate_options": False}),
        DecisionRequest(state="s", asked=ASKED),
    ),
    Taken(
        "everything",
        body(
            instructions="i",
            policy={
                "entropy_threshold": 0.5,
                "max_reads": 3,
                "layout": "split",
                "order": "state_first",
                "rotate_options": True,
                "seed": 7,
                "deadline_ms": 1500,
            },
        ),
        DecisionRequest(
            state="s",
            asked=PlanRequest(rubric=RUBRIC, instructions="i", layout=Layout.SPLIT, order=Order.STATE_FIRST),
            entropy_threshold=0.5,
            max_reads=3,
            rotates_options=True,
            seed=7,
            deadline_seconds=1.5,
        ),
    ),
    *(
        Taken(
            f"{layout.value}, {order.value}",
            body(policy={"layout": layout.value, "order": order.value}),
            DecisionRequest(state="s", asked=PlanRequest(rubric=RUBRIC, layout=layout, order=order)),
        )
        for layout in Layout
        for order in Order
    ),
    Taken(
        "the lower bounds",
        body(policy={"entropy_threshold": 0, "max_reads": 1, "seed": 0, "deadline_ms": 1}),
        DecisionRequest(state="s", asked=ASKED, entropy_threshold=0.0, max_reads=1, seed=0, deadline_seconds=0.001),
    ),
    Taken(
        "the upper bounds",
        body(policy={"entropy_threshold": 1, "max_reads": 64, "seed": 2**53 - 1, "deadline_ms": 3_600_000}),
        DecisionRequest(
            state="s", asked=ASKED, entropy_threshold=1.0, max_reads=64, seed=2**53 - 1, deadline_seconds=3600.0
        ),
    ),
)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.id)
def test_taken(case: Taken) -> None:
    """Every field in its unit; a field left out is the server's to choose."""
    assert parse_decide_request(case.body) == case.request


@dataclass(frozen=True)
class Refused:
    id: str
    body: Any
    pointer: str
    code: str


REFUSED = (
    Refused("a list", [CANARY], "", "model_type"),
    Refused("a text", CANARY, "", "model_type"),
    Refused("null", None, "", "model_type"),
    Refused("no state", {"rubric": RUBRIC}, "/state", "missing"),
    Refused("no rubric", {"state": CANARY}, "/rubric", "missing"),
    Refused("state null", body(state=None), "/state", "state_type"),
    Refused("state a number", body(state=7), "/state", "state_type"),
    Refused("state true", body(state=True), "/state", "state_type"),
    Refused("state an empty text", body(state=""), "/state", "state_type"),
    Refused("state white space", body(state=" \n\u2028"), "/state", "state_type"),
    Refused("state an empty object", body(state={}), "/state", "state_type"),
    Refused("state an empty list", body(state=[]), "/state", "state_type"),
    Refused("instructions a list", body(instructions=[CANARY]), "/instructions", "string_type"),
    Refused("instructions too long", body(instructions=CANARY * 6000), "/instructions", "string_too_long"),
    Refused("an unknown field", body(temperature=CANARY), "/temperature", "extra_forbidden"),
    Refused("a field that needs escaping", body(**{"a/b~": CANARY}), "/a~1b~0", "extra_forbidden"),
    Refused("a long field", body(**{"a" * 300: CANARY}), "/" + "a" * 256 + "…", "extra_forbidden"),
    Refused("policy null", body(policy=None), "/policy", "model_type"),
    Refused("policy a text", body(policy=CANARY), "/policy", "model_type"),
    Refused("an unknown policy", body(policy={"reads": CANARY}), "/policy/reads", "extra_forbidden"),
    Refused("more reads", body(policy={"max_reads": 65}), "/policy/max_reads", "less_than_equal"),
    Refused("no read", body(policy={"max_reads": 0}), "/policy/max_reads", "greater_than_equal"),
    Refused("no such layout", body(policy={"layout": CANARY}), "/policy/layout", "literal_error"),
    Refused("a layout in capitals", body(policy={"layout": "JOINT"}), "/policy/layout", "literal_error"),
    Refused("a layout of null", body(policy={"layout": None}), "/policy/layout", "literal_error"),
    Refused("no such order", body(policy={"order": CANARY}), "/policy/order", "literal_error"),
    Refused("an order of two", body(policy={"order": ["state_first"]}), "/policy/order", "literal_error"),
    Refused("a number for rotation", body(policy={"rotate_options": 0}), "/policy/rotate_options", "bool_type"),
    Refused("reads of true", body(policy={"max_reads": True}), "/policy/max_reads", "int_type"),
    Refused("over 1", body(policy={"entropy_threshold": 1.01}), "/policy/entropy_threshold", "less_than_equal"),
    Refused("below 0", body(policy={"entropy_threshold": -0.1}), "/policy/entropy_threshold", "greater_than_equal"),
    Refused("a number as text", body(policy={"entropy_threshold": "0"}), "/policy/entropy_threshold", "float_type"),
    Refused("a threshold of true", body(policy={"entropy_threshold": True}), "/policy/entropy_threshold", "float_type"),
    Refused("a negative seed", body(policy={"seed": -1}), "/policy/seed", "greater_than_equal"),
    Refused("a seed readers would round", body(policy={"seed": 2**53}), "/policy/seed", "less_than_equal"),
    Refused("a seed of 64 digits", body(policy={"seed": 10**63}), "/policy/seed", "less_than_equal"),
    Refused("half a seed", body(policy={"seed": 0.5}), "/policy/seed", "int_type"),
    Refused("a seed as text", body(policy={"seed": CANARY}), "/policy/seed", "int_type"),
    Refused("a seed of true", body(policy={"seed": True}), "/policy/seed", "int_type"),
    Refused("no time", body(policy={"deadline_ms": 0}), "/policy/deadline_ms", "greater_than_equal"),
    Refused("all the time", body(policy={"deadline_ms": 3_600_001}), "/policy/deadline_ms", "less_than_equal"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Refused) -> None:
    """One problem, in its place, by its rule; P1: the message quotes nothing that was sent."""
    ((pointer, code, message),) = problems_of(case.body)
    assert (pointer, code) == (case.pointer, case.code)
    assert message
    assert CANARY not in message


def test_all_problems_at_once() -> None:
    """A caller does not have to find them one by one."""
    found = problems_of({"extra": 1, "policy": {"seed": -1, "layout": "wide"}, "instructions": 1})
    assert {pointer for pointer, _, _ in found} == {
        "/state",
        "/rubric",
        "/extra",
        "/policy/seed",
        "/policy/layout",
        "/instructions",
    }


def test_a_body_of_nothing_but_mistakes() -> None:
    """The answer stays small whatever was sent."""
    assert len(problems_of(body(**{f"field{number}": 1 for number in range(98)}))) == 98
    many = {f"field{number}": 1 for number in range(10_000)}
    assert problems_of(body(**many)) == [("", "too_many_fields", "has far more fields than there are")]
    assert problems_of(body(policy=many)) == [("/policy", "too_many_fields", "has far more fields than there are")]


def test_bounds_are_in_the_message() -> None:
    """A caller reads what would be taken."""
    ((_, _, above),) = problems_of(body(policy={"deadline_ms": 3_600_001}))
    ((_, _, below),) = problems_of(body(policy={"seed": -1}))
    ((_, _, long),) = problems_of(body(instructions="x" * 65_537))
    assert "3600000" in above
    assert "0" in below
    assert "65536" in long


def asked(kind: type[Question], path: tuple[str, ...], *values: JsonScalar, **fields: Any) -> Question:
    """A question of these options."""
    return kind(path=path, text=CANARY, options=tuple(map(make_option, values)), **fields)


def answer(question: Question, value: Json, probabilities: tuple[float, ...], **fields: Any) -> Answer:
    """An answer with these probabilities."""
    outcome = fields.pop("outcome", Outcome.DECIDED)
    pool = fields.pop("pool", Pool(reads=((probabilities,),), orders=(0,)))
    likeliest = probabilities.index(max(probabilities))
    described = {"probability": max(probabilities), "entropy": 0.25, "confidence": 0.5, "margin": 0.75}
    found = {**described, "cell": (0, likeliest), **fields}
    reading = Reading(value=value, probabilities=probabilities, **found)
    held = None if outcome is Outcome.SKIPPED else value
    return Answer(question=question, reading=reading, pool=pool, value=held, outcome=outcome)


# Reads of a yes-or-no question, two of each order, one of them the other way round.
FOUR_READS = Pool(
    reads=(((0.75, 0.25),), ((0.75, 0.25),), ((0.75, 0.25),), ((0.25, 0.75),)), orders=(0, 0, 1, 1), label_mass=0.875
)


DECISION = Decision(
    id="dec_1",
    model=ServedModel(name="m", fingerprint="sha256:f"),
    outcome=Outcome.UNCERTAIN,
    value={"a/b": None, "pain": 3, "half": 0.5, "sure": True, "inside": {"share": 0.25, "some": ["x", None]}},
    answers=(
        answer(asked(Choice, ("a/b",), None, "x"), None, (0.75, 0.25), outcome=Outcome.UNCERTAIN, entropy=0.8),
        answer(asked(Score, ("pain",), 3, 4), 3, (1.0, 0.0), expected=3.0),
        answer(asked(Choice, ("half",), 0.5, 1), 0.5, (0.75, 0.25)),
        answer(asked(Boolean, ("sure",), True, False), True, (0.625, 0.375), pool=FOUR_READS),
        answer(asked(Probability, ("inside", "share"), True, False), 0.25, (0.25, 0.75)),
        answer(
            asked(Selection, ("inside", "some"), "x", 2, None, least=0, most=3),
            ["x", None],
            (0.9, 0.1, 0.7),
            probability=0.7,
            pool=Pool(reads=(((0.9, 0.1), (0.1, 0.9), (0.7, 0.3)),), orders=(0,)),
        ),
        answer(asked(Score, ("gone",), 1, 2), 2, (0.25, 0.75), outcome=Outcome.SKIPPED, entropy=0.95, expected=1.75),
    ),
    policy=Policy(entropy_threshold=0.3, max_reads=3, temperatures={Kind.SCORE: 1.5}),
    stop_reason=StopReason.DEADLINE,
    seeds=(42, 7, 8),
    rounds=2,
    results=(
        ReadResult(
            branch_logprobs=((),),
            fused_reads=0,
            fallbacks=(Fallback.BUDGET,),
            prompt_tokens=188,
            cached_tokens=128,
            canvas_tokens=16,
            engine_steps=(EngineStep(index=7, seconds=0.010), EngineStep(index=9, seconds=0.0009)),
            queue_seconds=0.0002,
        ),
        ReadResult(
            branch_logprobs=((), ()),
            fused_reads=2,
            fallbacks=(),
            prompt_tokens=188,
            cached_tokens=160,
            canvas_tokens=32,
            engine_steps=(EngineStep(index=10, seconds=0.002),),
            queue_seconds=0.0001,
        ),
    ),
    total_seconds=0.0121,
)


def answered(value: Json, probabilities: dict[str, float], **fields: Any) -> dict[str, Any]:
    """An answer on the wire."""
    return {
        "value": value,
        "outcome": "decided",
        "probability": max(probabilities.values()),
        "probabilities": probabilities,
        "entropy": 0.25,
        "confidence": 0.5,
        "margin": 0.75,
        "std_error": None,
        "agreement": 1.0,
        "reads": 1,
        "order_disagreement": None,
        "label_mass": None,
        "temperature": 1.0,
        **fields,
    }


EXPECTED = {
    "id": "dec_1",
    "model": "m",
    "outcome": "uncertain",
    "decision": {"a/b": None, "pain": 3, "half": 0.5, "sure": True, "inside": {"share": 0.25, "some": ["x", None]}},
    "answers": {
        "a~1b": answered(None, {"null": 0.75, "x": 0.25}, outcome="uncertain", entropy=0.8),
        "pain": answered(3, {"3": 1.0, "4": 0.0}, expected=3.0, temperature=1.5),
        "half": answered(0.5, {"0.5": 0.75, "1": 0.25}),
        "sure": answered(
            True,
            {"true": 0.625, "false": 0.375},
            std_error=0.125,
            agreement=0.75,
            reads=4,
            order_disagreement=0.25,
            label_mass=0.875,
        ),
        "inside/share": answered(0.25, {"true": 0.25, "false": 0.75}),
        "inside/some": answered(["x", None], {"x": 0.9, "2": 0.1, "null": 0.7}, probability=0.7),
        "gone": answered(None, {"1": 0.25, "2": 0.75}, outcome="skipped", entropy=0.95, expected=1.75, temperature=1.5),
    },
    "policy": {
        "reads": 3,
        "rounds": 2,
        "stop_reason": "deadline",
        "entropy_threshold": 0.3,
        "max_reads": 3,
        "max_entropy": 0.8,
        "seeds": [42, 7, 8],
    },
    "usage": {"input_tokens": 376, "cached_tokens": 288, "canvas_tokens": 48, "engine_steps": 3},
    "timing": {"total_ms": 12.1, "queue_ms": 0.3, "engine_ms": 12.9},
    "fingerprint": "sha256:f",
}


def test_an_answer_as_its_caller_sees_it() -> None:
    """The whole of it: keys, units, types; ids are pointers, `expected` is there for scores only.

    What is skipped has no value, and its entropy is not the decision's.
    """
    sent = decide_response(DECISION).model_dump_json()
    # As text, in which true is not 1 and 3 is not 3.0.
    assert json.dumps(json.loads(sent), sort_keys=True) == json.dumps(EXPECTED, sort_keys=True)


def test_where_all_is_skipped_there_is_no_doubt() -> None:
    """Nothing is asked, so nothing is uncertain."""
    skipped = tuple(replace(answer, value=None, outcome=Outcome.SKIPPED) for answer in DECISION.answers)
    sent = decide_response(replace(DECISION, answers=skipped, outcome=Outcome.DECIDED, stop_reason=StopReason.ENTROPY))
    assert (sent.outcome, sent.policy.max_entropy, sent.policy.stop_reason) == ("decided", 0.0, "entropy")
    assert {answer.value for answer in sent.answers.values()} == {None}
