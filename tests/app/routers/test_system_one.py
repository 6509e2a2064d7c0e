"""POST /v1/systemone and GET /v1/models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app import __release_date__
from app.access import ApiKey
from app.fingerprint import fingerprint
from app.main import create_app
from app.settings import Settings
from engine.fake import FakeEngine
from engine.protocol import Branch, CanvasSlot, EngineDied, ReadRequest
from tests.app.canary import CANARY
from tests.app.conftest import Decode
from tests.app.service import one_too_many, serving, until_phase

PATH = "/v1/systemone"
NOUL = {"type": "noul", "instructions": "Does the member want a refill?"}
CHOICE = {
    "type": "choice",
    "instructions": "Which team?",
    "criteria": {"billing": "invoices", "clinic": None, "pharmacy": {"owns": ["refills"]}},
}
SCORE = {"type": "score", "instructions": "How urgent?", "criteria": ["can wait", {"label": "soon"}, ["now"]]}
EXTENSIONS = {
    "x_outcome",
    "x_entropy",
    "x_margin",
    "x_std_error",
    "x_agreement",
    "x_reads",
    "x_order_disagreement",
    "x_label_mass",
    "x_temperature",
}


def body(**changed: Any) -> dict[str, Any]:
    """A good request with these fields over it."""
    return {"model": "jev-latest", "state": "Hello.", "questions": {"refill": NOUL}, **changed}


async def ask(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    """POST it."""
    return await client.post(PATH, json=body(**changed))


async def answers_of(client: httpx.AsyncClient, **questions: Any) -> dict[str, Any]:
    """The answers to these questions."""
    response = await ask(client, questions=questions)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["answers"]
    return found


def halves(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """1/2, 1/4, 1/8, ... and the last twice."""
    count = len(slot.label_token_ids)
    return tuple(-math.log(2) * min(i + 1, count - 1) for i in range(count))


async def test_golden_answer(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """The whole of it: the protocol's fields, ours with `x_`, and no other."""
    fake.logprobs = halves
    response = await ask(client, questions={"a": NOUL, "b": CHOICE, "c": SCORE}, x_policy={"seed": 42})
    found = response.json()
    assert response.headers["x-typesafe-request-id"] == response.headers["x-request-id"]
    assert found["x_id"].startswith("dec_")
    assert list(found)[:3] == ["model", "answers", "usage"]
    own = {name: found["answers"][name] for name in "abc"}
    for answer in own.values():
        assert answer.keys() >= EXTENSIONS
    plain = {
        name: {key: value for key, value in answer.items() if key not in EXTENSIONS} for name, answer in own.items()
    }
    assert plain == {
        "a": {"type": "noul", "noul": pytest.approx(0.5), "x_confidence": pytest.approx(0)},
        "b": {
            "type": "choice",
            "choice": "billing",
            "probabilities": pytest.approx({"billing": 0.5, "clinic": 0.25, "pharmacy": 0.25}),
            "confidence": pytest.approx((0.5 - 1 / 3) / (1 - 1 / 3)),
        },
        "c": {
            "type": "score",
            "score": pytest.approx(0.75),
            "legend": {"0": "can wait", "1": {"label": "soon"}, "2": ["now"]},
            "probabilities": pytest.approx({"0": 0.5, "1": 0.25, "2": 0.25}),
            "confidence": pytest.approx(0),
        },
    }
    assert own["b"]["x_entropy"] == pytest.approx(1.5 * math.log(2) / math.log(3))
    request = fake.requests[-1]
    usage = {
        "input_tokens": len(request.prompt_token_ids) + sum(len(b.suffix_token_ids) for b in request.branches),
        "output_tokens": sum(len(branch.canvas_token_ids) for branch in request.branches),
    }
    assert (found["model"], found["usage"]) == ("onestep-demo", usage)
    assert found["x_usage"]["engine_steps"] == 1
    assert found["x_policy"]["seeds"] == [42]
    assert found["x_fingerprint"] == fingerprint(await fake.start(), {})


async def test_one_bundle_of_isolated_questions(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Every question is a branch of its own behind the state, in one request to the engine."""
    before = len(fake.requests)
    await ask(client, questions={f"q{n}": NOUL for n in range(16)})
    (request,) = list(fake.requests)[before:]
    assert len(request.branches) == 16
    assert all(branch.suffix_token_ids for branch in request.branches)


async def test_another_layout(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """All questions in one canvas, when the request asks for that."""
    await ask(client, questions={f"q{n}": NOUL for n in range(3)}, x_policy={"layout": "joint"})
    (branch,) = fake.requests[-1].branches
    assert len(branch.canvas_slots) == 3


async def test_the_model_is_not_shown_names(client: httpx.AsyncClient, fake: FakeEngine, decode: Decode) -> None:
    """Nor do they change what it is shown."""
    requests = []
    for name in ("plain", CANARY):
        await ask(client, questions={name: CHOICE})
        requests.append(fake.requests[-1])
    first, second = requests
    assert replace(first, request_id="") == replace(second, request_id="")
    assert CANARY not in decode([*second.prompt_token_ids, *second.branches[0].suffix_token_ids])


async def test_what_the_model_is_shown(client: httpx.AsyncClient, fake: FakeEngine, decode: Decode) -> None:
    """Structured text as JSON, descriptions behind their options, instructions ahead of all."""
    task = {"task": "Is it a refill?", "examples": ["more tablets"]}
    criteria = {"true": ["asks for more"], "false": None}
    noul = {"type": "noul", "instructions": task, "criteria": criteria}
    await ask(client, questions={"a": noul, "b": CHOICE, "c": SCORE}, instructions="Be strict.")
    request = fake.requests[-1]
    suffixes = [decode(branch.suffix_token_ids) for branch in request.branches]
    assert "Be strict." in decode(request.prompt_token_ids)
    lines = [
        [
            '1. {"task": "Is it a refill?", "examples": ["more tablets"]}',
            '- A = yes: ["asks for more"]',
            "- B = no",
        ],
        ["1. Which team?", "- A = billing: invoices", "- B = clinic", '- C = pharmacy: {"owns": ["refills"]}'],
        ["1. How urgent?", "- A = 0: can wait", '- B = 1: {"label": "soon"}', '- C = 2: ["now"]'],
    ]
    for suffix, expected in zip(suffixes, lines, strict=True):
        assert "\n".join(expected) in suffix


@pytest.mark.parametrize("name", ["a", "with space", "a/b~c", "질문", "🎯", "0", "x" * 5000])
async def test_names(client: httpx.AsyncClient, name: str) -> None:
    """Any text that is not empty."""
    assert (await answers_of(client, **{name: NOUL})).keys() == {name}


async def test_options_that_look_like_something_else(client: httpx.AsyncClient) -> None:
    """Names are text: they come back as they were sent, whatever they would be elsewhere."""
    names = ["true", "null", "1", "0", "yes", " no ", "a/b", "x\ny", ""]
    found = await answers_of(client, q={"type": "choice", "criteria": dict.fromkeys(names)})
    assert list(found["q"]["probabilities"]) == names
    assert found["q"]["choice"] in names


@pytest.mark.parametrize("count", [2, 26, 128, 255])
async def test_options(client: httpx.AsyncClient, count: int) -> None:
    """From 2 to 255."""
    names = [f"option {n}" for n in range(count)]
    found = await answers_of(client, q={"type": "choice", "criteria": dict.fromkeys(names)})
    probabilities = found["q"]["probabilities"]
    assert list(probabilities) == names
    assert sum(probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("count", [2, 10])
async def test_levels(client: httpx.AsyncClient, count: int) -> None:
    """From 2 to 10; two that read the same are still two."""
    found = await answers_of(client, q={"type": "score", "criteria": ["the same"] * count})
    assert list(found["q"]["probabilities"]) == list(map(str, range(count)))
    mean = sum(int(level) * p for level, p in found["q"]["probabilities"].items())
    assert found["q"]["score"] == pytest.approx(mean)


CRITERIA: tuple[Any, ...] = (None, {}, {"true": "yes"}, {"false": ["no"]}, {"true": None, "false": None})


@pytest.mark.parametrize("criteria", CRITERIA)
async def test_criteria_of_yes_and_no(client: httpx.AsyncClient, criteria: Any) -> None:
    """One, both, or neither; with instructions or without."""
    for question in ({**NOUL, "criteria": criteria}, {"type": "noul", "criteria": criteria}):
        assert 0 <= (await answers_of(client, q=question))["q"]["noul"] <= 1


@pytest.mark.parametrize("model", ["jev-latest", "jev-1.13.0", "onestep-demo"])
async def test_models_that_are_taken(client: httpx.AsyncClient, model: str) -> None:
    """Any of TypeSafe's names, and ours: the answer says which model it is."""
    response = await ask(client, model=model)
    assert (response.status_code, response.json()["model"]) == (200, "onestep-demo")


async def test_fields_that_are_not_known_are_ignored(client: httpx.AsyncClient) -> None:
    """Of the request and of its questions."""
    plain = await ask(client)
    more = await ask(client, seed=7, x_trace={"a": 1}, questions={"refill": {**NOUL, "weight": 3}})
    assert (plain.status_code, more.status_code) == (200, 200)
    assert plain.json()["answers"] == more.json()["answers"]


async def test_models(client: httpx.AsyncClient) -> None:
    """As TypeSafe lists them, and as OpenAI does."""
    response = await client.get("/v1/models")
    found = response.json()
    names = ["onestep-demo", "jev-latest"]
    assert [model["name"] for model in found["models"]] == [model["id"] for model in found["data"]] == names
    assert {model["release_date"] for model in found["models"]} == {__release_date__}
    assert all(model["description"] for model in found["models"])
    assert response.headers["x-typesafe-request-id"]


async def test_models_of_a_service_that_is_not_ready(app: Any, fake: FakeEngine) -> None:
    """What will be served is known before it is."""
    fake.start_seconds = 60.0
    async with serving(app) as client:
        assert (await client.get("/v1/models")).status_code == 200


def wrong(place: list[str | int], kind: str, **changed: Any) -> Any:
    """A request that is wrong at one place, and how that is called."""
    name = "-".join(map(str, [*place, kind]))
    return pytest.param(changed, ["body", *place], kind, id=name[:60])


def asking(question: Any) -> dict[str, Any]:
    """One question, as the field of a request."""
    return {"questions": {"q": question}}


LONG = "x" * 5000
CANARIES = [CANARY, f"{CANARY} "]


@pytest.mark.parametrize(
    ("changed", "place", "kind"),
    [
        wrong(["state"], "state_type", state=None),
        wrong(["state"], "state_type", state=5),
        wrong(["state"], "state_type", state=" "),
        wrong(["model"], "string_type", model=None),
        wrong(["questions"], "too_short", questions={}),
        wrong(["questions"], "dict_type", questions=[NOUL]),
        wrong(["questions"], "bad_question_count", questions={f"q{n}": NOUL for n in range(65)}),
        wrong(["questions"], "too_many_fields", questions={f"q{n}": CANARY for n in range(2000)}),
        wrong(["questions", "", "[key]"], "string_too_short", questions={"": NOUL}),
        wrong(["questions", "q"], "model_attributes_type", **asking(CANARY)),
        wrong(["questions", "q"], "union_tag_not_found", **asking({"instructions": CANARY})),
        wrong(["questions", "q"], "union_tag_invalid", **asking({"type": CANARY})),
        wrong(["questions", "q"], "union_tag_invalid", **asking({"type": "box"})),
        wrong(["questions", "q", "noul", "instructions"], "text_type", **asking({**NOUL, "instructions": 5})),
        wrong(["questions", "q", "noul", "instructions"], "text_too_long", **asking({**NOUL, "instructions": LONG})),
        wrong(["questions", "q", "noul", "criteria"], "model_type", **asking({**NOUL, "criteria": CANARIES})),
        wrong(["questions", "q", "noul", "criteria", "true"], "text_type", **asking({**NOUL, "criteria": {"true": 1}})),
        wrong(
            ["questions", "q", "noul", "criteria", "false"],
            "text_too_long",
            **asking({**NOUL, "criteria": {"false": LONG}}),
        ),
        wrong(["questions", "q", "choice", "criteria"], "missing", **asking({"type": "choice"})),
        wrong(["questions", "q", "choice", "criteria"], "dict_type", **asking({**CHOICE, "criteria": CANARIES})),
        wrong(["questions", "q", "choice", "criteria"], "too_short", **asking({**CHOICE, "criteria": {CANARY: None}})),
        wrong(
            ["questions", "q", "choice", "criteria"],
            "too_long",
            **asking({**CHOICE, "criteria": {f"{CANARY}{n}": None for n in range(256)}}),
        ),
        wrong(
            ["questions", "q", "choice", "criteria"], "text_type", **asking({**CHOICE, "criteria": {"a": 1, "b": 2}})
        ),
        wrong(
            ["questions", "q", "choice"],
            "duplicate_option",
            **asking({**CHOICE, "criteria": dict.fromkeys(CANARIES)}),
        ),
        wrong(
            ["questions", "q", "choice", "criteria", "b"],
            "text_too_long",
            **asking({**CHOICE, "criteria": {"a": None, "b": LONG}}),
        ),
        wrong(["questions", "q", "score", "criteria"], "list_type", **asking({**SCORE, "criteria": {"0": CANARY}})),
        wrong(["questions", "q", "score", "criteria"], "too_short", **asking({**SCORE, "criteria": [CANARY]})),
        wrong(["questions", "q", "score", "criteria"], "too_long", **asking({**SCORE, "criteria": [CANARY] * 11})),
        wrong(["questions", "q", "score", "criteria"], "texts_type", **asking({**SCORE, "criteria": [CANARY, None]})),
        wrong(
            ["questions", "q", "score", "criteria", 1], "text_too_long", **asking({**SCORE, "criteria": ["a", LONG]})
        ),
        wrong(["instructions"], "string_type", instructions=[CANARY]),
        wrong(["x_policy", "layout"], "literal_error", x_policy={"layout": CANARY}),
        wrong(["x_policy", "wide"], "extra_forbidden", x_policy={"wide": CANARY}),
        wrong(["x_policy"], "too_many_fields", x_policy={f"{CANARY}{n}": 1 for n in range(101)}),
        wrong(["x_policy", "max_reads"], "less_than_equal", x_policy={"max_reads": 2}),
    ],
)
async def test_what_is_not_valid(
    client: httpx.AsyncClient, changed: dict[str, Any], place: list[str | int], kind: str
) -> None:
    """422, P1: at its place in the caller's own body, without what stands there."""
    response = await ask(client, **changed)
    assert response.status_code == 422
    assert response.json().keys() == {"detail"}
    assert {detail["type"] for detail in response.json()["detail"]} == {kind}
    (detail,) = response.json()["detail"]
    assert (detail.keys(), detail["loc"]) == ({"loc", "msg", "type"}, place)
    assert detail["msg"]
    assert CANARY not in response.text


async def test_everything_that_is_not_valid_is_listed(client: httpx.AsyncClient) -> None:
    """At once."""
    response = await client.post(PATH, json={"questions": {"a": {"type": "choice"}, "b": {}}})
    places = [detail["loc"] for detail in response.json()["detail"]]
    expected = ["model"], ["state"], ["questions", "a", "choice", "criteria"], ["questions", "b"]
    assert places == [["body", *place] for place in expected]


async def test_not_json(client: httpx.AsyncClient) -> None:
    """As FastAPI calls it."""
    refused = await client.post(PATH, content=b'{"model": ', headers={"content-type": "application/json"})
    (detail,) = refused.json()["detail"]
    assert (refused.status_code, detail["loc"], detail["type"]) == (422, ["body"], "json_invalid")


@pytest.mark.parametrize("changed", [{"model": CANARY}, {"model": "gpt-6-luna"}, {"assets": {CANARY: {}}}])
async def test_what_is_not_here(client: httpx.AsyncClient, changed: dict[str, Any]) -> None:
    """400: another model, and images."""
    refused = await ask(client, **changed)
    assert (refused.status_code, refused.json()["detail"]["error_type"]) == (400, "api_usage_error")
    assert CANARY not in refused.text


async def test_too_long_for_the_model(client: httpx.AsyncClient) -> None:
    """413: a state, or questions."""
    options = {f"option {n}": "a description that takes its room " * 3 for n in range(255)}
    for changed in ({"state": "word " * 5000}, asking({"type": "choice", "criteria": options})):
        refused = await ask(client, **changed)
        assert (refused.status_code, refused.json()["detail"]["error_type"]) == (413, "max_tokens_exceeded")


async def test_full(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """429, R1: and when to come back."""
    refused = await one_too_many(fake, lambda: ask(client), admitted=4)
    assert (refused.status_code, refused.json()["detail"]["error_type"]) == (429, "rate_limit_error")
    assert int(refused.headers["retry-after"]) >= 1


async def test_too_late(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """504, R6."""
    fake.gate.clear()
    refused = await ask(client, x_policy={"deadline_ms": 1})
    assert (refused.status_code, refused.json()["detail"]["error_type"]) == (504, "deadline_exceeded")


async def test_no_number(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """500, R18."""
    fake.logprobs = lambda *_: (float("nan"), 0.0)
    refused = await ask(client)
    assert (refused.status_code, refused.json()["detail"]["error_type"]) == (500, "internal_error")


async def test_dead(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """503, R13: now and from now on, and `/health` says the same."""
    fake.read_error = EngineDied("gone")
    for _ in range(2):
        refused = await ask(client)
        assert (refused.status_code, refused.json()["detail"]["error_type"]) == (503, "service_unavailable")
        assert "retry-after" in refused.headers
    assert (await client.get("/health")).status_code == 503


async def test_not_ready(app: Any, fake: FakeEngine) -> None:
    """503, R12."""
    fake.start_seconds = 60.0
    async with serving(app) as client:
        refused = await ask(client)
        assert (refused.status_code, refused.json()["detail"]["error_type"]) == (503, "service_unavailable")


async def test_another_method(client: httpx.AsyncClient) -> None:
    """405, and a route that is not there is nobody's protocol."""
    refused = await client.get(PATH)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert refused.json()["detail"]["error_type"] == "api_usage_error"
    assert (await client.post("/v1/systemtwo")).headers["content-type"] == "application/problem+json"


async def test_keys(settings: Settings, fake: FakeEngine) -> None:
    """S1: 403 without one, 401 with another's; tenants are told apart."""
    key = "k" * 32
    keyed = replace(settings, api_keys=(ApiKey.parse(f"clinic:{key}"),))
    async with serving(create_app(keyed, lambda _: fake)) as client:
        await until_phase(client, "ready")
        for headers, status in (({}, 403), ({"authorization": f"Bearer {CANARY}{key}"}, 401)):
            refused = await client.post(PATH, json=body(), headers=headers)
            assert (refused.status_code, refused.json()["detail"]["error_type"]) == (status, "authentication_error")
            assert refused.headers["x-typesafe-request-id"] == refused.headers["x-request-id"]
            assert CANARY not in refused.text
        answer = await client.post(PATH, json=body(), headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        assert fake.requests[-1].cache_salt


async def test_metrics(client: httpx.AsyncClient) -> None:
    """P4: counted by their routes, and under no names of the caller's."""
    await ask(client, questions={CANARY: NOUL})
    await client.get("/v1/models")
    page = (await client.get("/metrics")).text
    assert 'decide_requests_total{route="/v1/systemone",status="200"} 1.0' in page
    assert 'decide_requests_total{route="/v1/models",status="200"} 1.0' in page
    assert CANARY not in page


async def test_the_log_says_nothing_of_a_request(client: httpx.AsyncClient, lines: list[dict[str, Any]]) -> None:
    """P1: answered or refused."""
    for question in ({**NOUL, "instructions": CANARY}, {"type": CANARY}):
        await ask(client, state=CANARY, questions={CANARY: question})
    assert len(lines) == 2
    assert CANARY not in str(lines)
