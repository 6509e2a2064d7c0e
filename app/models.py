"""The body of `/v1/models`: what may stand in a request's `model`.

TypeSafe's clients read `models`, OpenAI's `data`: there is one route for both.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Literal

from app import __release_date__
from app.wire import Wire

OWN = "The model of this service."
SAME = "The same, by the name that TypeSafe's clients send."


class ModelMetadata(Wire):
    """A name that is taken, as TypeSafe has it."""

    name: str
    description: str
    release_date: str


class ModelItem(Wire):
    """The same, as OpenAI has it."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["onestep"] = "onestep"


class ModelsResponse(Wire):
    """All of them."""

    models: list[ModelMetadata]
    object: Literal["list"] = "list"
    data: list[ModelItem]


def models_response(model: str, alias: str) -> ModelsResponse:
    """The names of the one model there is; its date is that of the service, which is half of what answers."""
    day = date.fromisoformat(__release_date__)
    created = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    described = {model: OWN, alias: SAME}
    return ModelsResponse(
        models=[
            ModelMetadata(name=name, description=about, release_date=day.isoformat())
            for name, about in described.items()
        ],
        data=[ModelItem(id=name, created=created) for name in described],
    )
