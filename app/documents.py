"""What routes say of themselves in the OpenAPI document: the body they take and the problems they answer with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from app.envelopes import OpenAIRefusal, SystemOneRefusal
from app.openapi import schema_of
from app.wire import ProblemDocument

PROBLEM = {"application/problem+json": {"schema": schema_of(ProblemDocument)}}
DESCRIPTIONS = {
    400: "The body is not JSON as it is taken here.",
    401: "No key, or one that is nobody's.",
    408: "The body did not arrive in time.",
    413: "The body is over the byte limit.",
    415: "The body is not declared as JSON, or is encoded otherwise than with zstd.",
    422: "Understood, but outside what is accepted.",
    429: "Healthy and full; retry after a moment.",
    500: "A bug of the service.",
    503: "This replica cannot serve; see /health.",
    504: "Accepted, but not finished in time.",
}


SYSTEM_ONE_DESCRIPTIONS = {
    **DESCRIPTIONS,
    400: "The request asks for a model, or for images, that are not here.",
    401: "A key that is nobody's.",
    403: "No key.",
    413: "The body is over the byte limit, or state and questions over the model's context.",
    422: "The body is not valid.",
}
OPENAI_DESCRIPTIONS = {
    **DESCRIPTIONS,
    400: "The body is not valid, or too long for the model's context, or there are images in it.",
    404: "There is no such model here.",
}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problem documents that a route answers with."""
    return _responses(statuses, DESCRIPTIONS, PROBLEM)


def system_one_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route of TypeSafe's protocol answers with that is not 2xx."""
    return _responses(statuses, SYSTEM_ONE_DESCRIPTIONS, {"application/json": {"schema": schema_of(SystemOneRefusal)}})


def openai_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route of OpenAI's protocol answers with that is not 2xx."""
    return _responses(statuses, OPENAI_DESCRIPTIONS, {"application/json": {"schema": schema_of(OpenAIRefusal)}})


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The body that a route takes.

    It is read and checked by `app.body` and `app.wire`: FastAPI's own validation would echo input in its errors.
    """
    content = {"application/json": {"schema": schema_of(model)}}
    return {"requestBody": {"required": True, "content": content}}


def _responses(
    statuses: Iterable[int], descriptions: Mapping[int, str], content: Mapping[str, Any]
) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": descriptions[status], "content": content} for status in statuses}
