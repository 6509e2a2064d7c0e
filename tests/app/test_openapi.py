"""Schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import BaseModel, Field

from app.canvas.decision import Outcome
from app.canvas.plan import Layout, Order
from app.check_wire import RubricCheckRequest, RubricCheckResponse
from app.openapi import schema_of
from app.wire import DecideRequest, DecideResponse, PolicyRequest, ProblemDocument


class Inner(BaseModel):
    """Inside."""

    number: int


class Outer(BaseModel):
    """Outside."""

    plain: Inner
    described: Inner = Field(description="Another.")
    several: list[Inner]


def references(node: Any) -> list[str]:
    """Every `$ref` in a document."""
    if isinstance(node, list):
        return [found for item in node for found in references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if "$ref" in node else []
    return own + [found for value in node.values() for found in references(value)]


def test_definitions_stand_where_they_are_used() -> None:
    """Wherever the model is, and with what is said of the place."""
    inner = {
        "title": "Inner",
        "type": "object",
        "description": "Inside.",
        "properties": {"number": {"title": "Number", "type": "integer"}},
        "required": ["number"],
    }
    schema = schema_of(Outer)
    assert "$defs" not in schema
    assert schema["properties"] == {
        "plain": inner,
        "described": {**inner, "description": "Another."},
        "several": {"title": "Several", "type": "array", "items": inner},
    }


@pytest.mark.parametrize(
    "model", [DecideRequest, DecideResponse, RubricCheckRequest, RubricCheckResponse, ProblemDocument]
)
def test_wire_models_need_no_other_document(model: type[BaseModel]) -> None:
    """Their schemas can stand anywhere."""
    assert references(schema_of(model)) == []
    assert set(schema_of(model)["properties"]) == set(model.model_fields)


async def test_every_reference_of_the_document_resolves(client: httpx.AsyncClient) -> None:
    """C2: clients are generated from it."""
    document = (await client.get("/openapi.json")).json()
    for reference in references(document):
        node = document
        for key in reference.removeprefix("#/").split("/"):
            node = node[key]


async def body_schema(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    """The schema of the body that a route takes."""
    document = (await client.get("/openapi.json")).json()
    schema: dict[str, Any] = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return schema


@pytest.mark.parametrize(("path", "required"), [("/decide", {"state", "rubric"}), ("/rubrics/check", {"rubric"})])
async def test_requests_are_described(client: httpx.AsyncClient, path: str, required: set[str]) -> None:
    """C2: with every field of the policy."""
    body = await body_schema(client, path)
    assert set(body["properties"]) == {"state", "rubric", "instructions", "policy"}
    assert set(body["required"]) == required
    assert set(body["properties"]["policy"]["properties"]) == set(PolicyRequest.model_fields)


async def test_layouts_and_orders_are_described(client: httpx.AsyncClient) -> None:
    """C2: every one there is, by the name it is asked for."""
    policy = (await body_schema(client, "/decide"))["properties"]["policy"]["properties"]
    assert (policy["layout"]["enum"], policy["layout"]["default"]) == (list(Layout), "joint")
    assert (policy["order"]["enum"], policy["order"]["default"]) == (list(Order), "rubric_first")
    assert policy["layout"]["description"]
    assert policy["order"]["description"]


async def test_outcomes_are_described(client: httpx.AsyncClient) -> None:
    """C2: an answer may be skipped, a decision may not."""
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    assert schemas["AnswerResponse"]["properties"]["outcome"]["enum"] == list(Outcome)
    assert schemas["DecideResponse"]["properties"]["outcome"]["enum"] == ["decided", "uncertain"]
