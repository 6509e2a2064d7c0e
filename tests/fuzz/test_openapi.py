"""What the OpenAPI document says, held against the service as its users run it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.core.result import Ok

from tests.fuzz.asked import BODIES
from tests.fuzz.promised import assert_at_rest, assert_goes_on, assert_promised
from tests.server import ServerProcess

pytestmark = pytest.mark.engine

load_all_checks()
MODEL = "onestep-demo"
# Not theirs that no answer be 5xx: deadlines are among what is sent, and 504 is what they promise.
NAMES = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
CHECKS = [check for name in NAMES if not isinstance(check := schemathesis.checks.CHECKS.get_one(name), type)]
assert len(CHECKS) == len(NAMES), "a check is of another kind than it was"


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_service_is_what_its_document_says(
    real_server: ServerProcess, fuzzing: settings, mode: GenerationMode
) -> None:
    """C1, S6: every status, media type and body that comes back is in it, for requests that it allows and others."""
    document = schemathesis.openapi.from_url(f"{real_server.url}/openapi.json")
    operations = [found.ok() for found in document.get_all_operations() if isinstance(found, Ok)]
    posted = [operation for operation in operations if operation.method.upper() == "POST"]
    assert {operation.path for operation in posted} == set(BODIES)
    for operation in posted:
        _ask(real_server, operation, mode, fuzzing)
    assert_at_rest(real_server)


def _ask(
    server: ServerProcess,
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    fuzzing: settings,
) -> None:
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=server.url, timeout=60) as client:

        @fuzzing
        @given(operation.as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case[Any]) -> None:
            if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
                case.body["model"] = MODEL  # any other is refused before anything else is looked at
            sent = case.as_transport_kwargs(base_url=server.url)
            assert not sent.pop("cookies"), "no operation takes any"
            if "data" in sent:
                sent["content"] = sent.pop("data")
            response = client.request(**sent)
            assert_promised(response)
            case.validate_response(response, checks=CHECKS)
            statuses[response.status_code] += 1
            assert_goes_on(client)

        ask()
    assert statuses
