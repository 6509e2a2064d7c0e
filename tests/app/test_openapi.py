"""Schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import BaseModel, Field

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


@pytest.mark.parametrize("model", [DecideRequest, DecideResponse, ProblemDocument])
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


async def test_the_request_is_described(client: httpx.AsyncClient) -> None:
    """C2: with every field of the policy."""
    document = (await client.get("/openapi.json")).json()
    body = document["paths"]["/decide"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"state", "rubric", "instructions", "policy"}
    assert body["required"] == ["state", "rubric"]
    assert set(body["properties"]["policy"]["properties"]) == set(PolicyRequest.model_fields)
