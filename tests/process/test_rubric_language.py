"""The whole rubric language on the real engine: exact, in few engine steps, cheap to repeat, and hard to break."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import torch
from jsonschema import Draft202012Validator

from app.canvas.plan import Planner
from app.settings import Settings
from app.startup import planner_of
from app.tokenizer import CheckpointTokenizer
from tests.cases import HEADACHE, rubric
from tests.process.expected import Answers, ExpectedAnswers, Planned, distance
from tests.reference import HuggingFaceReference
from tests.server import ServerProcess, asking_for_reads

pytestmark = pytest.mark.engine

# float32 on both sides, summed in another order.
TOLERANCE = 1e-3
BLOCK_TOKENS = 32
LAYOUTS = ("joint", "split", "isolated")
ORDERS = ("rubric_first", "state_first")

THEMES = ("knee", "head", "bill", "refill", "sleep", "visit", "form", "plan", "card", "doctor")
SIGNS = ("fever", "cough", "rash", "nausea", "pain", "chills", "fatigue", "cramps", "itch", "swelling")


@dataclass(frozen=True)
class Served:
    """A server, and what its answers should be."""

    server: ServerProcess
    expected: ExpectedAnswers
    client: httpx.Client

    @property
    def planner(self) -> Planner:
        """A planner like the server's own."""
        return self.expected.planner

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The body of the decision."""
        response = self.client.post("/decide", json=asking_for_reads(request, 1))
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def post(self, body: bytes) -> httpx.Response:
        """Whatever is answered to these bytes."""
        return self.client.post("/decide", content=body, headers={"content-type": "application/json"})


def serve(server: ServerProcess, checkpoint: Path) -> Iterator[Served]:
    """A running server of a checkpoint, with the reference beside it."""
    planner = planner_of(Settings(), CheckpointTokenizer.from_checkpoint(checkpoint))
    expected = ExpectedAnswers(HuggingFaceReference.from_checkpoint(checkpoint), planner)
    with httpx.Client(base_url=server.url, timeout=120) as client:
        yield Served(server, expected, client)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """The reference beside the server's own threads: two that wait for each other would be slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def demo(real_server: ServerProcess, checkpoint: Path) -> Iterator[Served]:
    """The demo checkpoint."""
    yield from serve(real_server, checkpoint)


@pytest.fixture(scope="module")
def gemma(gemma_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A random checkpoint with a real Gemma tokenizer, which has labels for 255 options."""
    log = tmp_path_factory.mktemp("gemma-server") / "log"
    with ServerProcess(log, DECIDE_MODEL=str(gemma_checkpoint), DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        yield from serve(server, gemma_checkpoint)


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Served:
    """The server that a test names."""
    found: Served = request.getfixturevalue(request.param)
    return found


def probabilities(body: dict[str, Any]) -> Answers:
    """Per question, those of its options."""
    return {question: answer["probabilities"] for question, answer in body["answers"].items()}


def listed(name: str, count: int) -> dict[str, Any]:
    """A question of so many options."""
    return {"title": f"Which {name}?", "enum": [f"{name}{number}" for number in range(count)]}


def selection(count: int) -> dict[str, Any]:
    """A question of so many signs, any of which may be there."""
    signs = [f"{SIGNS[number % 10]} {number // 10}" for number in range(count)]
    return {"type": "array", "title": "Which signs?", "items": {"enum": signs}, "uniqueItems": True}


def question(number: int) -> dict[str, Any]:
    """One of many questions, no two of which have the same text."""
    about = f"{THEMES[number % 10]} {number}"
    if number % 3:
        return {"type": "boolean", "title": f"About {about}?"}
    return {"title": f"Which {about}?", "enum": ["new", "old", "none"]}


def questions(count: int) -> dict[str, Any]:
    """So many questions."""
    return rubric(**{f"q{number}": question(number) for number in range(count)})


# Rubrics at the limits of the language, and the server that reads them.
WIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "64 questions": ("demo", questions(64)),
    "three canvases": ("demo", rubric(signs=selection(20), **questions(9)["properties"])),
    "40 selections": ("demo", rubric(signs=selection(40), refill=question(1))),
    "255 options": ("gemma", rubric(code=listed("code", 255))),
    "200 options among others": (
        "gemma",
        rubric(before=question(1), code=listed("code", 200), after=question(3)),
    ),
    "two long lists": (
        "gemma",
        rubric(code=listed("code", 140), form=listed("form", 150), after=question(3)),
    ),
}
# Of these, canvases in the joint layout, and the questions of the fullest one that is read in parts.
CANVASES = {"three canvases": 3, "40 selections": 4, "64 questions": 6}
IN_PARTS = {"255 options": 1, "200 options among others": 3, "two long lists": 3}


def asking(asked: dict[str, Any], layout: str = "joint", order: str = "rubric_first", **more: Any) -> dict[str, Any]:
    """A request about a knee."""
    policy = {"layout": layout, "order": order, "seed": 7}
    state = "My knee hurts when I walk, since the third of May."
    return {"state": state, "rubric": asked, "instructions": "Be careful.", "policy": policy, **more}


# But for one that takes the reference long and is the other order's in all that matters.
CASES = [case for case in product(WIDE, LAYOUTS, ORDERS) if case != ("64 questions", "split", "rubric_first")]


@pytest.mark.parametrize(
    ("served", "asked", "layout", "order"),
    [pytest.param(*WIDE[name], layout, order, id=f"{name}-{layout}-{order}") for name, layout, order in CASES],
    indirect=["served"],
)
def test_wide_rubrics_equal_the_reference(served: Served, asked: dict[str, Any], layout: str, order: str) -> None:
    """Every probability is that of Hugging Face's model, however many canvases and reads the rubric takes."""
    request = asking(asked, layout, order)
    answers = probabilities(served.ask(request))
    assert distance(answers, served.expected(request)) < TOLERANCE


@pytest.mark.parametrize(("name", "canvases"), CANVASES.items())
def test_wide_rubrics_are_wider_than_a_canvas(demo: Served, name: str, canvases: int) -> None:
    """What is tested above is what it says."""
    branches = Planned.of(demo.planner, asking(WIDE[name][1])).plan.branches
    assert len({branch.canvas.first for branch in branches}) == len(branches) == canvases


@pytest.mark.parametrize(("name", "together"), IN_PARTS.items())
def test_long_lists_are_read_in_parts(gemma: Served, name: str, together: int) -> None:
    """What is tested above is what it says: one canvas, read twice for one part of the labels each."""
    first, second = Planned.of(gemma.planner, asking(WIDE[name][1])).plan.branches
    assert first.canvas == second.canvas
    assert len(first.slots) == together


def swapped(answers: Answers) -> Answers:
    """Each question with the probabilities of the next one of as many options."""
    found: Answers = {}
    for name, options in answers.items():
        others = [other for other in answers if len(answers[other]) == len(options)]
        other = others[(others.index(name) + 1) % len(others)]
        found[name] = dict(zip(options, answers[other].values(), strict=True))
    return found


def test_the_comparison_can_fail(demo: Served) -> None:
    """Another layout, order, seed or state, or one question's answer in the place of another's, would be noticed."""
    request = asking(WIDE["three canvases"][1], "split")
    answers = probabilities(demo.ask(request))
    changes: list[dict[str, Any]] = [
        asking(request["rubric"], "joint"),
        asking(request["rubric"], "isolated"),
        asking(request["rubric"], "split", "state_first"),
        {**request, "policy": {**request["policy"], "seed": 8}},
        {**request, "state": request["state"] + "!"},
        {**request, "instructions": "Be quick."},
    ]
    for changed in changes:
        assert distance(answers, demo.expected(changed)) > 10 * TOLERANCE
    assert distance(answers, swapped(demo.expected(request))) > 10 * TOLERANCE


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 8, 16])
def test_one_engine_step(demo: Served, layout: str, count: int) -> None:
    """R19: whatever the layout, and whether the prompt is in the prefix cache or not."""
    request = asking(questions(count), layout, instructions=f"{count} in {layout}: take your time.")
    planned = Planned.of(demo.planner, request)
    # A single branch's suffix is part of the engine's prompt, where the cache can keep it.
    prompt_tokens = len(planned.prompt) + (len(planned.suffixes[0]) if len(planned.suffixes) == 1 else 0)
    cold, warm = (demo.ask(request)["usage"] for _ in range(2))
    assert (cold["engine_steps"], warm["engine_steps"]) == (1, 1)
    assert (cold["cached_tokens"], warm["cached_tokens"]) == (0, whole_blocks(prompt_tokens - 1))


# Engine requests that the layouts come to: each may take a step of its own, for they do not wait for each other.
ENGINE_REQUESTS = {
    "64 questions": (1, 2, 2),
    "three canvases": (1, 1, 1),
    "40 selections": (1, 1, 1),
    "255 options": (2, 2, 2),
    "200 options among others": (2, 2, 2),
}


@pytest.mark.parametrize(
    ("served", "asked", "layout", "most"),
    [
        pytest.param(*WIDE[name], layout, most, id=f"{name}-{layout}")
        for name, requests in ENGINE_REQUESTS.items()
        for layout, most in zip(LAYOUTS, requests, strict=True)
    ],
    indirect=["served"],
)
def test_wide_rubrics_take_few_engine_steps(served: Served, asked: dict[str, Any], layout: str, most: int) -> None:
    """What one bundle holds takes one step; parts of a slot, and what does not fit into a bundle, one more at most."""
    assert 1 <= served.ask(asking(asked, layout))["usage"]["engine_steps"] <= most


def whole_blocks(tokens: int) -> int:
    """Of so many tokens, those in full KV blocks: what the prefix cache can hold."""
    return tokens // BLOCK_TOKENS * BLOCK_TOKENS


@pytest.mark.parametrize(("count", "states"), [(9, 20), (40, 100)], ids=["within the window", "beyond the window"])
def test_many_states_under_one_rubric(demo: Served, count: int, states: int) -> None:
    """R19: from the second state on, every full block of the tokens ahead of the state is in the prefix cache."""
    requests = [
        asking(questions(count), instructions=f"For all of {states} states.", state=f"{number} knees hurt.")
        for number in range(states)
    ]
    first, *others = (demo.ask(request)["usage"] for request in requests)
    before = len(Planned.of(demo.planner, requests[0]).plan.frame.before)
    assert before >= 4 * BLOCK_TOKENS
    assert first["cached_tokens"] == 0
    assert {usage["cached_tokens"] for usage in others} == {whole_blocks(before)}


def long_state(name: str) -> str:
    """About a thousand tokens that no other test sends."""
    return f"{name} writes: " + " ".join(f"On day {day} my {THEMES[day % 10]} hurts." for day in range(130))


def test_rubrics_about_one_long_state(demo: Served) -> None:
    """R19: where the state leads, five rubrics share all its full blocks from the second on."""
    state = long_state("Ada")
    requests = [
        asking(rubric(one=question(number)), order="state_first", state=state, instructions=f"{number} of five.")
        for number in range(5)
    ]
    first, *others = (demo.ask(request)["usage"] for request in requests)
    prompts = [Planned.of(demo.planner, request).prompt for request in requests]
    shared = next(at for at, tokens in enumerate(zip(*prompts, strict=False)) if len(set(tokens)) > 1)
    before = len(Planned.of(demo.planner, requests[0]).plan.frame.before)
    assert shared >= before + len(demo.planner.tokenizer.encode(state)) > 900
    assert first["cached_tokens"] <= whole_blocks(before)
    assert {usage["cached_tokens"] for usage in others} == {whole_blocks(shared)}


def test_isolated_questions_share_the_state(demo: Served) -> None:
    """Sixteen questions about a new state run it once; the next sixteen about it find its full blocks."""
    state = long_state("Bob")
    asked = questions(32)["properties"]
    halves = [dict(list(asked.items())[:16]), dict(list(asked.items())[16:])]
    requests = [asking(rubric(**half), "isolated", state=state, instructions="Bob's.") for half in halves]
    usages = [demo.ask(request)["usage"] for request in requests]
    for request, usage in zip(requests, usages, strict=True):
        planned = Planned.of(demo.planner, request)
        assert len(planned.suffixes) == 16
        assert usage["input_tokens"] == len(planned.prompt) + sum(map(len, planned.suffixes))
        assert usage["engine_steps"] == 1
    assert len(planned.prompt) > 1000
    assert [usage["cached_tokens"] for usage in usages] == [0, whole_blocks(len(planned.prompt) - 1)]


def test_more_isolated_questions_than_a_bundle_holds(demo: Served) -> None:
    """They are several engine requests, all but the first of which find the state's full blocks."""
    request = asking(questions(64), "isolated", state=long_state("Cem"), instructions="Cem's.")
    planned = Planned.of(demo.planner, request)
    usage = demo.ask(request)["usage"]
    bundles, rest = divmod(usage["input_tokens"] - sum(map(len, planned.suffixes)), len(planned.prompt))
    assert (rest, bundles > 1) == (0, True)
    assert usage["cached_tokens"] == (bundles - 1) * whole_blocks(len(planned.prompt) - 1)


SIDES = ["left", "right", "both"]
VISIT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Visit",
    "description": "What a member wants.",
    "type": "object",
    "$defs": {
        "Severity": {"title": "How severe is it?", "enum": ["mild", "moderate", "severe"]},
        "Place": {
            "title": "Where it is",
            "type": "object",
            "properties": {
                "side": {"title": "Which side?", "enum": SIDES},
                "depth": {"title": "How deep?", "type": "integer", "minimum": 1, "maximum": 5},
                "severity": {"$ref": "#/$defs/Severity"},
            },
            "required": ["side", "depth", "severity"],
            "additionalProperties": False,
        },
    },
    "properties": {
        "kind": {"title": "What is it about?", "enum": ["symptom", "billing"]},
        "signs": {**selection(8), "minItems": 1, "maxItems": 3},
        "place": {"$ref": "#/$defs/Place"},
        "second": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "title": "A second place"},
        "risk": {"title": "Is it a risk?", "type": "number", "minimum": 0, "maximum": 1},
        "urgent": {"title": "Is it urgent?", "type": "boolean"},
        "code": {"title": "Which code?", "oneOf": [{"const": 1, "title": "one"}, {"const": None}, {"const": "x"}]},
        "version": {"const": 3},
        "caller": {"title": "Who calls?", "enum": ["member", "family"]},
    },
    "required": ["kind", "signs", "place", "second", "risk", "urgent", "code", "version", "caller"],
    "if": {"properties": {"kind": {"const": "symptom"}}, "required": ["kind"]},
    "then": {"properties": {"severity": {"$ref": "#/$defs/Severity"}}, "required": ["severity"]},
    "else": {
        "properties": {"bill": {"title": "Which bill?", "type": "object", "properties": {"paid": {"type": "boolean"}}}},
        "required": ["bill"],
    },
    "dependentSchemas": {
        "severity": {
            "properties": {"since": {"title": "Since when?", "enum": ["today", "week", "month"]}},
            "required": ["since"],
        }
    },
    "dependentRequired": {"degrees": ["measured"]},
    "allOf": [
        {
            "if": {"properties": {"signs": {"contains": {"const": "fever 0"}}}, "required": ["signs"]},
            "then": {"properties": {"degrees": {"title": "How hot?", "enum": [38, 39, 40]}}, "required": ["degrees"]},
        },
        {"properties": {"measured": {"title": "Was that measured?", "type": "boolean"}}},
    ],
    "unevaluatedProperties": False,
}
# What a decision holds besides what is always there, said without JSON Schema.
CONDITIONAL: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "severity": lambda decision: decision["kind"] == "symptom",
    "bill": lambda decision: decision["kind"] == "billing",
    "bill/paid": lambda decision: decision["kind"] == "billing",
    "since": lambda decision: decision["kind"] == "symptom",
    "degrees": lambda decision: "fever 0" in decision["signs"],
    "measured": lambda decision: "fever 0" in decision["signs"],
    **{f"second/{name}": lambda decision: decision["second"] is not None for name in ("side", "depth", "severity")},
}
VISITS = [
    {"state": state, "rubric": VISIT, "policy": {"seed": seed, "layout": layout, "order": ORDERS[seed % 2]}}
    for state in ("My knee hurts.", "Where is my bill?", {"age": 61}, [{"role": "user", "content": "I have a fever"}])
    for layout in LAYOUTS
    for seed in range(4)
]


ABSENT = object()


def at(decision: Any, path: str) -> Any:
    """What a decision holds at a place."""
    for name in path.split("/"):
        decision = decision.get(name, ABSENT) if isinstance(decision, dict) else ABSENT
    return decision


def test_decisions_satisfy_the_callers_own_schema(demo: Served, gemma: Served) -> None:
    """Over states, seeds and layouts; a property whose condition does not hold is absent, its answer skipped.

    The demo may have its own mind of a question; random weights say anything.
    """
    Draft202012Validator.check_schema(VISIT)
    validator = Draft202012Validator(VISIT)
    seen: set[tuple[str, bool]] = set()
    for request, served in product(VISITS, (demo, gemma)):
        body = served.ask(request)
        decision, answers = body["decision"], body["answers"]
        validator.validate(decision)
        present = {path: is_there(decision) for path, is_there in CONDITIONAL.items()}
        seen |= present.items()
        assert present == {path: at(decision, path) is not ABSENT for path in CONDITIONAL}
        assert set(CONDITIONAL) - answers.keys() == {"bill"}  # an object, not a question
        for path, answer in answers.items():
            found = at(decision, path)
            if found is ABSENT:
                assert (answer["outcome"], answer["value"]) == ("skipped", None)
            else:
                assert answer["outcome"] != "skipped"
                assert answer["value"] == (found is not None if path == "second" else found)
    assert seen == set(product(CONDITIONAL, (True, False))), "some condition never held, or always did"


def test_the_callers_schema_can_fail(demo: Served) -> None:
    """It refuses a decision that lacks what a condition asks for, or holds what it does not."""
    decision = demo.ask(VISITS[0])["decision"]
    validator = Draft202012Validator(VISIT)
    assert validator.is_valid(decision)
    other = {"symptom": "billing", "billing": "symptom"}[decision["kind"]]
    assert not validator.is_valid({**decision, "kind": other})
    for name in decision:
        assert not validator.is_valid({key: value for key, value in decision.items() if key != name})


def renamed(name: str) -> str:
    """A name that would act as an instruction, were it shown."""
    return f"answer_no_{name}"


ASKED = {**questions(10)["properties"], "signs": selection(20), "listed": listed("form", 40)}
# Per change, the questions then, and what those of above are called.
CHANGES: dict[str, tuple[dict[str, Any], Callable[[str], str]]] = {
    "renamed": ({renamed(name): asked for name, asked in ASKED.items()}, renamed),
    "in another order": (dict(reversed(ASKED.items())), str),
    "one more ahead": ({"extra": listed("pill", 26), **ASKED}, str),
    "one more behind": ({**ASKED, "extra": selection(30)}, str),
    "fifty more ahead": ({**{f"extra{n}": question(100 + n) for n in range(50)}, **ASKED}, str),
}


def isolated(asked: dict[str, Any], order: str = "rubric_first") -> dict[str, Any]:
    """A request without a seed: that must not depend on the other questions either."""
    return {**asking(rubric(**asked)), "policy": {"layout": "isolated", "order": order}}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("change", CHANGES)
def test_isolated_questions_do_not_move_each_other(demo: Served, change: str, order: str) -> None:
    """Renaming, reordering and adding questions leaves every probability where it was."""
    changed, name_of = CHANGES[change]
    one, other = (probabilities(demo.ask(isolated(asked, order))) for asked in (ASKED, changed))
    for name, options in one.items():
        assert other[name_of(name)] == pytest.approx(options, abs=1e-6)


@pytest.mark.parametrize("name", ASKED)
def test_isolated_questions_answer_as_each_alone(demo: Served, name: str) -> None:
    """A question without others is no bundle: float32 rounds the same sums in another shape."""
    every, alone = (probabilities(demo.ask(isolated(asked))) for asked in (ASKED, {name: ASKED[name]}))
    assert alone[name] == pytest.approx(every[name], abs=1e-5)


def test_joint_questions_do_move_each_other(demo: Served) -> None:
    """What the isolated layout keeps apart can be noticed: in one canvas the same change moves an answer."""
    one = probabilities(demo.ask(asking(rubric(**ASKED))))
    other = probabilities(demo.ask(asking(rubric(**CHANGES["one more ahead"][0]))))
    assert any(other[name] != pytest.approx(options, abs=TOLERANCE) for name, options in one.items())


def body_of(asked: Any) -> bytes:
    """A request with that rubric."""
    return json.dumps({"state": "a", "rubric": asked}).encode()


def doubling(levels: int) -> dict[str, Any]:
    """References that come to two to the power of `levels` questions."""
    refers = {
        f"d{n}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{n - 1}"} for side in SIDES[:2]}}
        for n in range(1, levels)
    }
    definitions = {"d0": {"type": "boolean"}, **refers}
    return {**rubric(a={"$ref": f"#/$defs/d{levels - 1}"}), "$defs": definitions}


YES_NO = {"type": "boolean", "title": "Yes?"}
NESTED = 100_000
HOSTILE: dict[str, tuple[Callable[[], bytes], int]] = {
    "nested objects": (
        lambda: b'{"state": "a", "rubric": ' + b'{"properties": {"a": ' * NESTED + b"{}" + b"}}" * NESTED + b"}",
        413,
    ),
    "nested arrays": (lambda: b'{"state": "a", "rubric": ' + b"[" * NESTED + b"]" * NESTED + b"}", 400),
    "nested and cut off": (lambda: b'{"state": "a", "rubric": ' + b'{"a":' * NESTED, 400),
    "nested within the limit": (lambda: body_of(doubling(30)), 422),
    "a rubric that is itself": (lambda: body_of({"$ref": "#"}), 422),
    "a property that is the rubric": (lambda: body_of(rubric(a={"$ref": "#"})), 422),
    "a cycle": (lambda: body_of({**rubric(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}), 422),
    "doubling references": (lambda: body_of(doubling(20)), 422),
    "a pattern": (lambda: body_of(rubric(a={"type": "string", "pattern": "^(a+)+$"}, b=YES_NO)), 422),
    "a pattern of names": (lambda: body_of({**rubric(a=YES_NO), "patternProperties": {"^(a|a)*$": YES_NO}}), 422),
    "a pattern of a condition": (
        lambda: body_of(
            {**rubric(a=YES_NO), "if": {"properties": {"a": {"pattern": "^(a+)+$"}}}, "then": rubric(b=YES_NO)}
        ),
        422,
    ),
    "ten megabytes": (lambda: body_of(rubric(a={"enum": [f"option {n}" for n in range(600_000)]})), 413),
    "all that a body may hold": (lambda: body_of(rubric(a={"enum": [f"v{n}" for n in range(100_000)]})), 422),
    "as many questions": (lambda: body_of(rubric(**{f"p{n}": YES_NO for n in range(18_000)})), 422),
    "as long a title": (lambda: body_of(rubric(a={**YES_NO, "title": "x" * 1_000_000})), 422),
    "as long a name": (lambda: body_of(rubric(**{"x" * 1_000_000: YES_NO})), 422),
    "duplicate keys": (lambda: b'{"state": "a", "rubric": {"type": "object", "type": "object"}}', 400),
    "duplicate properties": (
        lambda: b'{"state": "a", "rubric": {"type": "object", "properties": {"a": {}, "a": {}}}}',
        400,
    ),
    "a lone surrogate": (lambda: b'{"state": "a", "rubric": {"title": "\\ud800"}}', 400),
    "a lone surrogate as a name": (lambda: b'{"state": "a", "rubric": {"properties": {"\\udfff": {}}}}', 400),
    "a long integer": (lambda: b'{"state": "a", "rubric": {"minimum": ' + b"9" * 100_000 + b"}}", 400),
    "a huge range": (lambda: body_of(rubric(a={"type": "integer", "minimum": -(10**60), "maximum": 10**60})), 422),
    "a tiny step": (
        lambda: body_of(rubric(a={"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 1e-300})),
        422,
    ),
}


@pytest.mark.parametrize(("body", "status"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_rubrics(demo: Served, body: Callable[[], bytes], status: int) -> None:
    """S6, S7, S9: refused with a problem document, no memory left behind, and the next good request succeeds."""
    process = psutil.Process(demo.server.running.pid)
    sent, before = body(), process.memory_info().rss
    refused = demo.post(sent)
    assert process.memory_info().rss - before < 50 << 20
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["errors"]
    assert demo.server.decide(HEADACHE).status_code == 200


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that waits for connections to 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def is_connected(listener: socket.socket) -> bool:
    """Whether somebody has connected since this was last asked."""
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


REMOTE: dict[str, Callable[[str], dict[str, Any]]] = {
    "whole": lambda url: {"$ref": url},
    "property": lambda url: rubric(a={"$ref": url}),
    "with a fragment": lambda url: rubric(a={"$ref": f"{url}#/$defs/a"}),
    "option": lambda url: rubric(a={"oneOf": [{"$ref": url}, {"const": 1}]}),
    "item": lambda url: rubric(a={"type": "array", "items": {"$ref": url}}),
    "condition": lambda url: {**rubric(a=YES_NO), "if": {"$ref": url}, "then": rubric(b=YES_NO)},
    "dynamic": lambda url: rubric(a={"$dynamicRef": url}),
    "by way of a base": lambda url: {"$id": url, **rubric(a={"$ref": "other#/$defs/a"})},
    "by way of a definition": lambda url: {**rubric(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": url}}},
}


@pytest.mark.parametrize("remote", REMOTE.values(), ids=REMOTE.keys())
def test_remote_references_are_not_followed(
    demo: Served, listener: socket.socket, remote: Callable[[str], dict[str, Any]]
) -> None:
    """S7: they are refused, and nobody connects to where they point."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
    refused = demo.post(body_of(remote(url)))
    assert refused.status_code == 422
    assert not is_connected(listener)
    assert demo.ask(HEADACHE)["answers"]


def test_names_of_remote_schemas_are_not_looked_up(demo: Served, listener: socket.socket) -> None:
    """`$schema` and `$id` are names: they may point anywhere, and nobody goes there."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
    demo.ask(asking({"$schema": url, "$id": url, **rubric(a=YES_NO)}))
    assert not is_connected(listener)
    with socket.create_connection(listener.getsockname()):
        assert is_connected(listener)  # or the tests above could not fail
