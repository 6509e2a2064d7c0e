"""Schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

DEFINITION = "#/$defs/"


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON Schema with its definitions in place: one that can stand anywhere in a larger document."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].removeprefix(DEFINITION)
            return inline({**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}})
        # A discriminator is about references; each alternative says its own tag.
        return {key: inline(value) for key, value in node.items() if key != "discriminator"}

    inlined: dict[str, Any] = inline(schema)
    return inlined
