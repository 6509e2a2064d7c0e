"""Fitting temperatures, and what is known to fit them on."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from app.calibration import load_temperatures
from app.canvas.question import Kind
from app.settings import Settings
from bench import calibrate as command
from bench.__main__ import make_parser
from bench.calibration import MIN_ANSWERS, Observed, fit, observed
from engine.fake import FakeEngine
from engine.protocol import Branch, CanvasSlot, ReadRequest
from tests.cases import REFILL, TOPIC, rubric


@pytest.fixture
def settings() -> Settings:
    """Room for the clients that commands bring."""
    return Settings(engine="fake", max_reads=1)


def seen(scale: float, count: int = 4000, seed: int = 0) -> list[Observed]:
    """Answers of a model whose logits are so many times what they should be."""
    random = Random(seed)
    made = []
    for number in range(count):
        true = [random.gauss(0, 2) for _ in range(3)]
        weights = [math.exp(logit) for logit in true]
        right = random.choices(range(3), weights)[0]
        made.append(Observed(request=number, kind="choice", logits=tuple(scale * one for one in true), right=right))
    return made


@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0])
def test_the_scale_is_found(scale: float) -> None:
    """And loss, calibration error and Brier's score are better for it, on answers it was not fitted on."""
    found = fit("choice", seen(scale))
    assert found is not None
    assert found.temperature == pytest.approx(scale, rel=0.08)
    assert all(after < before for before, after in zip(found.before, found.after, strict=True))
    assert found.after[1] < 0.03


def test_what_is_right_already_stays() -> None:
    """Within what the sample can tell."""
    found = fit("choice", seen(1.0))
    assert found is not None
    assert found.temperature == pytest.approx(1.0, abs=0.06)


def test_what_chance_would_better_is_left_alone() -> None:
    """A temperature that fits one half and not the other is none: 1 stays, and the figures with it."""
    halves = [
        Observed(request=n, kind="choice", logits=(3.0, 0.0), right=int(n % 2 == 0 and n % 4 == 0)) for n in range(400)
    ]
    found = fit("choice", halves)
    assert found is not None
    assert (found.temperature, found.after) == (1.0, found.before)


def test_too_few_answers_are_not_fitted() -> None:
    """Nor answers of one request, of which no half can judge the other."""
    assert fit("choice", seen(2.0, MIN_ANSWERS - 1)) is None
    one = [Observed(request=2, kind="choice", logits=(1.0, 0.0), right=0)] * 100
    assert fit("choice", one) is None


def answer(temperature: float = 1.0, **probabilities: float) -> dict[str, Any]:
    """A member of `answers`."""
    return {"probabilities": probabilities, "temperature": temperature}


def test_what_is_observed() -> None:
    """Logits at temperature 1, whatever the service's is; an array has a slot per option."""
    (choice,) = observed(1, "choice", answer(2.0, a=0.75, b=0.25), "b")
    assert choice.right == 1
    assert choice.logits[0] - choice.logits[1] == pytest.approx(2 * math.log(3))
    assert choice.probabilities(2.0) == pytest.approx((0.75, 0.25))
    (boolean,) = observed(1, "boolean", answer(true=0.9, false=0.1), True)
    assert boolean.right == 0
    first, second = observed(1, "selection", answer(x=0.9, y=0.2), ["x"])
    assert (first.right, second.right) == (0, 1)
    assert second.probabilities(1.0) == pytest.approx((0.2, 0.8))
    (certain,) = observed(1, "score", {"probabilities": {"0": 1.0, "1": 0.0}, "temperature": 1.0}, 1)
    assert certain.loss(1.0) < 30


@pytest.mark.parametrize(("kind", "expected"), [("choice", "c"), ("selection", ["a", "c"])])
def test_what_is_no_option_is_refused(kind: str, expected: Any) -> None:
    """A labelling mistake is found, not fitted."""
    with pytest.raises(ValueError, match="line 7"):
        observed(7, kind, answer(a=0.5, b=0.5), expected)


async def test_the_file_is_one_that_the_service_takes(
    client: httpx.AsyncClient, fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the service: a bold engine that is right two times of three gets a temperature above 1."""
    random = Random(5)
    rights = [random.random() < 2 / 3 for _ in range(80)]
    fake.logprobs = lambda _request, _branch, slot: (-0.001, *[-7.0] * (len(slot.label_token_ids) - 1))
    cases = [
        {
            "state": f"Message {number}.",
            "rubric": rubric(topic=TOPIC, refill=REFILL),
            "expected": {"topic": "billing" if right else "pharmacy", "refill": right},
        }
        for number, right in enumerate(rights)
    ]
    files = {name: tmp_path / name for name in ("cases.jsonl", "calibration.json", "plot.png")}
    files["cases.jsonl"].write_text("\n".join(map(json.dumps, cases)))
    monkeypatch.setattr(command, "connect", lambda _: nullcontext(client))
    arguments = ["--cases", *map(str, (files["cases.jsonl"], "--out", files["calibration.json"]))]
    table = await command.calibrate(
        make_parser().parse_args(["calibrate", *arguments, "--plot", str(files["plot.png"])])
    )
    temperatures = load_temperatures(str(files["calibration.json"]), "onestep-demo")
    assert temperatures.keys() == {Kind.CHOICE, Kind.BOOLEAN}
    assert all(temperature > 2 for temperature in temperatures.values())
    assert "boolean" in table
    assert files["plot.png"].read_bytes().startswith(b"\x89PNG")


def torn(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """Nothing is likelier than anything else."""
    return (-1.0,) * len(slot.label_token_ids)


async def test_every_case_is_read_once(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Temperatures cannot be taken out of a mean, so no decision may be read again."""
    fake.logprobs = torn
    before = len(fake.requests)
    case = {"state": "x", "rubric": rubric(refill=REFILL), "expected": {"refill": True}, "policy": {"max_reads": 8}}
    await command.observe(client, [case])
    assert len(fake.requests) - before == 1
