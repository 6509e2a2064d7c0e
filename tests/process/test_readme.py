"""What the README shows is what the service does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.server import ServerProcess

pytestmark = pytest.mark.engine

README = (Path(__file__).parents[2] / "README.md").read_text()


def shown_request() -> dict[str, Any]:
    """The body of the README's first curl command."""
    match = re.search(r"curl -s \S+/decide .*? -d '\n(.*?)'\n```", README, re.DOTALL)
    assert match is not None
    body: dict[str, Any] = json.loads(match[1])
    return body


def shown_answer() -> dict[str, Any]:
    """The answer the README shows for it."""
    match = re.search(r"```json\n(.*?)```", README, re.DOTALL)
    assert match is not None
    answer: dict[str, Any] = json.loads(match[1])
    return answer


def test_the_first_request(real_server: ServerProcess) -> None:
    """The README's request gets an answer of the README's shape, over the README's options."""
    response = real_server.decide(shown_request(), max_reads=None)
    assert response.status_code == 200
    body, shown = response.json(), shown_answer()
    jsonschema.validate(body["decision"], shown_request()["rubric"])
    assert list(body) == list(shown)
    for part in ("policy", "usage", "timing"):
        assert list(body[part]) == list(shown[part])
    topic, shown_topic = body["answers"]["topic"], shown["answers"]["topic"]
    assert list(topic) == list(shown_topic)
    assert list(topic["probabilities"]) == list(shown_topic["probabilities"])
    assert body["policy"]["seeds"] == shown["policy"]["seeds"]
    assert body["usage"]["input_tokens"] == shown["usage"]["input_tokens"]
