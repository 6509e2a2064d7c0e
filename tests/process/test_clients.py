"""The clients that people have, unmodified, against the whole service; and the field's own conformance suite."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from typesafe_sdk import (
    AsyncTypeSafeClient,
    Choice,
    Noul,
    RetryPolicy,
    Score,
    TypeSafeAPIError,
    TypeSafeAuthenticationError,
    TypeSafeBadRequestError,
    TypeSafeClient,
    TypeSafeUnprocessableEntityError,
)

from tests.server import ServerProcess, SlowServerProcess

CLIENTS = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
REQUIREMENTS = 48
# The suite asks about 255 options with a description each, which the usual context has no room for.
ROOMY_TOKENS = 8192
# Of these either the first or the others can be tried, by whether the service has keys.
WITHOUT_KEYS, WITH_KEYS = {"auth.ignored-when-off"}, {"auth.bearer", "auth.missing", "auth.invalid"}
KEY = "k" * 40
STATE = "My tablets are almost gone, and I have a headache."
QUESTIONS: dict[str, Any] = {
    "refill": Noul(instructions="Does the member want a refill?"),
    "topic": Choice(instructions="What is it about?", criteria={"billing": None, "pharmacy": "tablets and refills"}),
    "pain": Score(instructions="How bad is the pain?", criteria=["none", "some", "much"]),
}
OPENAI_QUESTIONS: list[Any] = [
    {"type": "score", "instructions": "How bad is the pain?", "levels": [{"label": "none"}, {"label": "much"}]},
    {"type": "choice", "name": "topic", "instructions": "About?", "choices": [{"value": "bill"}, {"value": True}]},
    {"type": "predicate", "name": "refill", "instructions": "The member wants a refill."},
]
# How far an answer may move by what it does not depend on, in float32.
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The service with a key, over the fake engine: for what no model has a part in."""
    settings = {"DECIDE_ENGINE": "fake", "DECIDE_API_KEYS": f"clinic:{KEY}", "DECIDE_MAX_MODEL_LEN": str(ROOMY_TOKENS)}
    with ServerProcess(tmp_path_factory.mktemp("fake-server") / "log", **settings) as server:
        server.wait_until_ready()
        yield server


@pytest.fixture(scope="module")
def roomy_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The real service, with a context that 255 described options fit into."""
    settings = {"DECIDE_DTYPE": "float32", "DECIDE_MAX_MODEL_LEN": str(ROOMY_TOKENS)}
    with ServerProcess(tmp_path_factory.mktemp("roomy") / "log", **settings) as server:
        server.wait_until_ready()
        yield server


def conformance(server: ServerProcess, tmp_path: Path, key: str = "") -> dict[str, str]:
    """What `jevcompat test` says of each requirement."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-c", "from jevcompat.cli import main; raise SystemExit(main())"]
    arguments = ["test", server.url, "--json", str(report), "--key-env", "JEV_KEY"]
    environment = {**os.environ, "JEV_KEY": key}
    made = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600, env=environment)
    assert made.returncode == 0, made.stdout + made.stderr
    return {found["id"]: found["status"] for found in json.loads(report.read_text())["results"]}


@pytest.mark.engine
def test_conformance(roomy_server: ServerProcess, tmp_path: Path) -> None:
    """Every requirement of System One that a service without keys can meet."""
    found = conformance(roomy_server, tmp_path)
    assert len(found) == REQUIREMENTS
    assert {name for name, status in found.items() if status != "pass"} == WITH_KEYS


def test_conformance_with_keys(fake_server: ServerProcess, tmp_path: Path) -> None:
    """And the others."""
    found = conformance(fake_server, tmp_path, KEY)
    assert len(found) == REQUIREMENTS
    assert {name for name, status in found.items() if status != "pass"} == WITHOUT_KEYS


def typesafe(server: ServerProcess, **options: Any) -> TypeSafeClient:
    """TypeSafe's client of a service."""
    return TypeSafeClient(base_url=server.url, **{"api_key": KEY, "timeout": 60, **options})


def openai_client(server: ServerProcess, **options: Any) -> openai.OpenAI:
    """OpenAI's."""
    return openai.OpenAI(base_url=f"{server.url}/v1", **{"api_key": KEY, "timeout": 60, **options})


@pytest.mark.engine
def test_typesafes_client(real_server: ServerProcess) -> None:
    """Parses every answer; names come back, and what it asked for in an extension holds."""
    with typesafe(real_server) as client:
        answer = client.system_one(state=STATE, questions=QUESTIONS, extra_body={"x_policy": {"max_reads": 1}})
        models = client.models.list().models
    assert 0 <= answer.nouls["refill"].noul <= 1
    assert set(answer.choices["topic"].probabilities) == {"billing", "pharmacy"}
    assert answer.scores["pain"].legend == {0: "none", 1: "some", 2: "much"}
    assert answer.raw_http_response.json()["x_policy"]["reads"] == 1
    assert answer.model in {model.name for model in models}


@pytest.mark.engine
async def test_typesafes_async_client(real_server: ServerProcess) -> None:
    """Several requests at once get what each gets alone."""
    asked: dict[str, Any] = {"state": STATE, "questions": QUESTIONS, "extra_body": {"x_policy": {"max_reads": 1}}}
    with typesafe(real_server) as client:
        alone = client.system_one(**asked)
    async with AsyncTypeSafeClient(base_url=real_server.url, api_key=KEY, timeout=60) as client_of_many:
        together = await asyncio.gather(*(client_of_many.system_one(**asked) for _ in range(4)))
    for answer in together:
        assert answer.nouls["refill"].noul == pytest.approx(alone.nouls["refill"].noul, abs=1e-4)
        assert answer.scores["pain"].score == pytest.approx(alone.scores["pain"].score, abs=1e-4)


@pytest.mark.engine
def test_typesafes_client_compresses(real_server: ServerProcess) -> None:
    """Bodies of a kilobyte and more come encoded with zstd, and are answered as if they did not."""
    answers = []
    for compression in ("zstd", False):
        with typesafe(real_server, compression=compression) as client:
            asked = {"refill": QUESTIONS["refill"]}
            answers.append(client.system_one(state=f"{STATE} " * 40, questions=asked).nouls["refill"].noul)
    assert answers[0] == pytest.approx(answers[1], abs=1e-5)


def test_typesafes_client_raises_its_own_errors(fake_server: ServerProcess) -> None:
    """By what went wrong, with the request's id and a message that says where."""
    cases: list[tuple[type[TypeSafeAPIError], str, dict[str, Any]]] = [
        (TypeSafeAuthenticationError, "authenticate", {"api_key": "x" * 40}),
        (TypeSafeBadRequestError, "no such model", {"model": "gpt-4"}),
    ]
    for kind, message, options in cases:
        with typesafe(fake_server, **options) as client, pytest.raises(kind, match=message) as raised:
            client.system_one(state=STATE, questions=QUESTIONS)
        assert (raised.value.request_id or "").startswith("req_")
    one_option: dict[str, Any] = {"team": Choice(criteria={"clinic": None})}
    place = r"questions\.team\.choice\.criteria: must hold 2"
    with typesafe(fake_server) as client, pytest.raises(TypeSafeUnprocessableEntityError, match=place):
        client.system_one(state=STATE, questions=one_option)
    with typesafe(fake_server, compression=False) as client, pytest.raises(TypeSafeAPIError) as refused:
        client.system_one(state="word " * 20_000, questions=QUESTIONS)
    assert (refused.value.status, refused.value.body["detail"]["error_type"]) == (413, "max_tokens_exceeded")


def test_openais_client_raises_its_own_errors(fake_server: ServerProcess) -> None:
    """By what went wrong, with the place."""
    asked: dict[str, Any] = {"model": "gpt-6-luna", "input": STATE, "questions": OPENAI_QUESTIONS}
    with pytest.raises(openai.AuthenticationError):
        openai_client(fake_server, api_key="x" * 40).decisions.create(**asked)
    client = openai_client(fake_server)
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.decisions.create(**{**asked, "model": "gpt-4"})
    with pytest.raises(openai.BadRequestError) as refused:
        client.decisions.create(**{**asked, "questions": [{**OPENAI_QUESTIONS[0], "levels": []}]})
    assert refused.value.param == "questions[0].levels"
    assert (refused.value.request_id or "").startswith("req_")


@pytest.fixture
def full_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A service that has room for one request, which takes a second."""
    settings = {"DECIDE_ENGINE": "fake", "DECIDE_MAX_INFLIGHT": "1", "SLOW_READ_SECONDS": "1"}
    with SlowServerProcess(tmp_path / "log", **settings) as server:
        server.wait_until_ready()
        yield server


def test_clients_come_back(full_server: ServerProcess) -> None:
    """R1: turned away with 429, each of them waits as it was told to, asks again, and gets its answer."""
    asked: dict[str, Any] = {"model": "gpt-6-luna", "input": STATE, "questions": OPENAI_QUESTIONS}
    patient = RetryPolicy(max_retries=10, timeout=60)
    with typesafe(full_server, retry=patient) as client, ThreadPoolExecutor(4) as callers:
        decisions = openai_client(full_server, max_retries=10).decisions
        made: list[Future[Any]] = [callers.submit(client.system_one, STATE, QUESTIONS) for _ in range(2)]
        made += [callers.submit(lambda: decisions.create(**asked)) for _ in range(2)]
        assert all(future.result().answers for future in made)
    page = httpx.get(f"{full_server.url}/metrics").text
    turned_away = re.findall(r'decide_requests_total\{route="(.*?)",status="429"\}', page)
    assert set(turned_away) <= {"/v1/systemone", "/v1/decisions"}
    assert turned_away


@pytest.mark.engine
def test_openais_client(real_server: ServerProcess) -> None:
    """Parses every answer, in the order of the questions; extensions are attributes."""
    body: dict[str, Any] = {"x_policy": {"max_reads": 1}}
    client = openai_client(real_server)
    made = client.decisions.create(model="gpt-6-luna", input=STATE, questions=OPENAI_QUESTIONS, extra_body=body)
    answers: list[Any] = list(made.answers)
    score, choice, predicate = answers
    assert (score.type, choice.type, predicate.type) == ("score", "choice", "predicate")
    assert choice.choice in ("bill", True)
    assert 0 <= score.score <= 1
    assert 0 <= predicate.probability <= 1
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    assert (made.model_extra or {})["x_policy"]["reads"] == 1
    assert made.model in {model.id for model in client.models.list()}


def ask(server: ServerProcess, questions: dict[str, Any], state: Any = STATE) -> dict[str, Any]:
    """One read of questions about a state, by System One."""
    body = {"model": "jev-latest", "state": state, "questions": questions, "x_policy": {"max_reads": 1}}
    response = httpx.post(f"{server.url}/v1/systemone", json=body, timeout=120)
    found: dict[str, Any] = response.raise_for_status().json()
    return found


NOUL = {"type": "noul", "instructions": "Does the member want a refill?"}
CHOICE = {"type": "choice", "instructions": "What is it about?", "criteria": {"billing": None, "pharmacy": "tablets"}}
SCORE = {"type": "score", "instructions": "How bad is the pain?", "criteria": ["none", "some", "much"]}
ASKED = {"refill": NOUL, "topic": CHOICE, "pain": SCORE}


def numbers(answer: dict[str, Any]) -> list[float]:
    """The probabilities of an answer."""
    return list(answer.get("probabilities", {"noul": answer.get("noul")}).values())


@pytest.mark.engine
def test_an_answer_depends_on_its_own_question_alone(real_server: ServerProcess) -> None:
    """Not on names, on order, or on what else is asked."""
    plain = ask(real_server, ASKED)["answers"]
    renamed = ask(real_server, {f"{name} 🙂": question for name, question in ASKED.items()})["answers"]
    turned = ask(real_server, dict(reversed(ASKED.items())))["answers"]
    more = ask(real_server, {"urgent": {"type": "noul", "instructions": "Is it urgent?"}, **ASKED})["answers"]
    alone = {name: ask(real_server, {name: question})["answers"][name] for name, question in ASKED.items()}
    for name, answer in plain.items():
        for other in (renamed[f"{name} 🙂"], turned[name], more[name], alone[name]):
            assert numbers(other) == pytest.approx(numbers(answer), abs=TOLERANCE)
    joint = httpx.post(
        f"{real_server.url}/v1/systemone",
        json={
            "model": "jev-latest",
            "state": STATE,
            "questions": ASKED,
            "x_policy": {"max_reads": 1, "layout": "joint"},
        },
        timeout=120,
    ).json()["answers"]
    # The comparison can fail: read together, they do move each other.
    assert numbers(joint["pain"]) != pytest.approx(numbers(plain["pain"]), abs=TOLERANCE)


@pytest.mark.engine
def test_questions_about_one_state_take_one_step(real_server: ServerProcess) -> None:
    """However many; the state's tokens are computed once."""
    state_tokens = 0
    for count in (1, 8, 16):
        state = f"State {count}. " + "My knee hurts when I walk, and the tablets do not help at all. " * 60
        asked = {f"q{n}": {"type": "noul", "instructions": f"Does number {n} hurt?"} for n in range(count)}
        usage = ask(real_server, asked, state)["x_usage"]
        assert usage["engine_steps"] == 1
        # What comes with each question is its own few tokens: the state was not paid for again.
        state_tokens = state_tokens or usage["input_tokens"]
        assert state_tokens > 900
        assert usage["input_tokens"] < state_tokens + 60 * count


def examples() -> dict[str, str]:
    """The examples of docs/clients.md, by the section that each stands in."""
    found = re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)```", CLIENTS, re.DOTALL | re.MULTILINE)
    return dict(found)


@pytest.mark.engine
@pytest.mark.parametrize("section", ["TypeSafe's client", "OpenAI's client", "pydantic and httpx"])
def test_an_example_of_the_documentation(
    real_server: ServerProcess, section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It runs as it stands, but for the port, and prints an answer."""
    assert set(examples()) == {"TypeSafe's client", "OpenAI's client", "pydantic and httpx"}
    code = examples()[section]
    assert "http://127.0.0.1:8000" in code
    there = code.replace("http://127.0.0.1:8000", real_server.url)
    exec(compile(there, "docs/clients.md", "exec", dont_inherit=True), {"__name__": "example"})
    assert re.search(r"0\.\d+", capsys.readouterr().out)
