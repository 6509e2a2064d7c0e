"""Reading again on the real engine: how often, in how many engine steps, and that pools are the mean of their reads."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from app.canvas.noise import is_sampled, read_seed
from app.canvas.plan import Planner
from app.settings import Settings
from tests.cases import MOOD, PAIN, REFILL, STATES, TOPIC, rubric
from tests.process.expected import ExpectedAnswers
from tests.reference import HuggingFaceReference
from tests.server import ServerProcess

pytestmark = pytest.mark.engine

TOLERANCE = 1e-3
SEED = 11
# No trained answer is that sure, and no untrained one.
NEVER = 0.0
LISTED = {"type": "array", "items": {"enum": ["pain", "fever", "cough"]}, "title": "Symptoms"}
ASKED: dict[str, Any] = {"state": STATES[1], "rubric": rubric(topic=TOPIC, pain=PAIN, symptoms=LISTED)}


@pytest.fixture(scope="module")
def expected(checkpoint: Path, planner: Planner) -> ExpectedAnswers:
    """Hugging Face's DiffusionGemma with the served checkpoint, float32."""
    return ExpectedAnswers(HuggingFaceReference.from_checkpoint(checkpoint), planner)


def ask(server: ServerProcess, body: dict[str, Any], **policy: Any) -> dict[str, Any]:
    """The answer to a request under a policy."""
    response = server.decide({**body, "policy": {"seed": SEED, **policy}}, max_reads=None)
    answer: dict[str, Any] = response.raise_for_status().json()
    return answer


@pytest.mark.parametrize(("max_reads", "steps"), [(1, 1), (2, 2), (4, 3), (8, 4)])
def test_a_round_is_one_engine_step(real_server: ServerProcess, max_reads: int, steps: int) -> None:
    """With threshold 0 exactly as many reads as are allowed; 8 of them take 4 engine steps in all."""
    body = ask(real_server, ASKED, entropy_threshold=NEVER, max_reads=max_reads)
    assert body["policy"]["reads"] == max_reads
    assert body["policy"]["rounds"] == body["usage"]["engine_steps"] == steps
    assert body["policy"]["seeds"] == [read_seed(SEED, number) for number in range(max_reads)]
    assert body["policy"]["stop_reason"] == "max_reads"
    assert {answer["reads"] for answer in body["answers"].values()} == {max_reads}


def test_threshold_1_is_one_read(real_server: ServerProcess) -> None:
    """Nothing is less certain than that."""
    body = ask(real_server, ASKED, entropy_threshold=1)
    assert (body["policy"]["reads"], body["policy"]["stop_reason"], body["outcome"]) == (1, "entropy", "decided")


def test_the_servers_own_budget(real_server: ServerProcess) -> None:
    """Eight reads, as the README says; more are refused."""
    assert ask(real_server, ASKED, entropy_threshold=NEVER)["policy"]["reads"] == Settings().max_reads == 8
    refused = real_server.decide({**ASKED, "policy": {"max_reads": 9}}, max_reads=None)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/policy/max_reads"


@pytest.mark.parametrize("layout", ["joint", "split", "isolated"])
def test_pools_are_the_mean_of_their_reads(real_server: ServerProcess, expected: ExpectedAnswers, layout: str) -> None:
    """Of Hugging Face's model, read once with each of the seeds that the answer names."""
    body = ask(real_server, ASKED, entropy_threshold=NEVER, max_reads=4, layout=layout)
    reads = [expected({**ASKED, "policy": {"layout": layout, "seed": seed}}) for seed in body["policy"]["seeds"]]
    assert len(reads) == 4
    for name, answer in body["answers"].items():
        mean = {key: sum(read[name][key] for read in reads) / len(reads) for key in reads[0][name]}
        assert answer["probabilities"] == pytest.approx(mean, abs=TOLERANCE)
        assert answer["std_error"] is not None


@pytest.mark.parametrize("layout", ["split", "isolated"])
def test_only_what_is_unsettled_is_read_again(real_server: ServerProcess, layout: str) -> None:
    """A question that any answer settles is read once, beside one that none does."""
    demanding = {**REFILL, "x-entropy-threshold": NEVER}
    asked = rubric(easy={**TOPIC, "x-entropy-threshold": 1}, hard=demanding, mood={**MOOD, "x-entropy-threshold": 1})
    body = ask(real_server, {"state": STATES[0], "rubric": asked}, layout=layout)
    assert {name: answer["reads"] for name, answer in body["answers"].items()} == {"easy": 1, "hard": 8, "mood": 1}
    assert body["usage"]["engine_steps"] == 4


def test_a_repeat_is_byte_identical(real_server: ServerProcess) -> None:
    """With the same seed, but for id and timing, once the prompt is in the prefix cache."""

    def once() -> dict[str, Any]:
        body = ask(real_server, ASKED, entropy_threshold=NEVER)
        return {key: value for key, value in body.items() if key not in ("id", "timing")}

    once()
    assert once() == once()


def test_orders_rotate(real_server: ServerProcess) -> None:
    """Four rounds, four prompts, and a figure of what that changes."""
    body = ask(real_server, ASKED, entropy_threshold=NEVER, rotate_options=True)
    assert (body["policy"]["rounds"], body["usage"]["engine_steps"]) == (4, 4)
    assert all(0 <= answer["order_disagreement"] <= 1 for answer in body["answers"].values())
    assert any(answer["order_disagreement"] > 0 for answer in body["answers"].values())


def test_label_mass_is_the_models(real_server: ServerProcess, expected: ExpectedAnswers) -> None:
    """Of a decision whose seed is sampled: Hugging Face's softmax over the vocabulary; of others it is not told."""
    share = Settings().label_mass_share
    sampled = next(seed for seed in count() if is_sampled(seed, share))
    body = ask(real_server, ASKED, seed=sampled, max_reads=1)
    mass = expected.label_mass({**ASKED, "policy": {"seed": sampled}})
    assert {name: answer["label_mass"] for name, answer in body["answers"].items()} == pytest.approx(
        mass, abs=TOLERANCE
    )
    other = ask(real_server, ASKED, seed=next(seed for seed in count() if not is_sampled(seed, share)))
    assert {answer["label_mass"] for answer in other["answers"].values()} == {None}


def test_a_stand_in(real_server: ServerProcess) -> None:
    """What a property names for an uncertain answer stands in the decision; the probabilities say what was read."""
    topic = {**TOPIC, "enum": [*TOPIC["enum"], "human_review"]}
    demanding = {**topic, "x-min-probability": 1, "x-on-uncertain": "human_review"}
    body = ask(real_server, {"state": STATES[1], "rubric": rubric(topic=demanding)}, max_reads=2)
    answer = body["answers"]["topic"]
    assert body["decision"] == {"topic": "human_review"}
    assert (body["outcome"], answer["outcome"], answer["value"]) == ("uncertain", "uncertain", "human_review")
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
