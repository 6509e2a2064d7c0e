"""GET /health: may this replica be sent requests?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from app.canvas.prompt import PROMPT_LAYOUT_VERSION
from app.canvas.question import Kind
from app.lifecycle import Lifecycle
from app.serving import Serving
from app.settings import Settings

router = APIRouter()

NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"description": "Not ready; `phase` says where the process is in its life."}
}


@router.get("/health", responses=NOT_READY)
async def health(request: Request) -> JSONResponse:
    """200 only when ready: a real decision was made at start-up and the engine lives. `/decide` answers 503 exactly
    when this does."""
    lifecycle: Lifecycle = request.state.lifecycle
    body: dict[str, Any] = {"phase": lifecycle.phase.value}
    serving: Serving = request.state.serving
    if serving.info is not None:
        body |= asdict(serving.info)
        del body["checkpoint_digest"], body["vocabulary_size"]
        body["prompt_layout_version"] = PROMPT_LAYOUT_VERSION
        body["temperatures"] = {kind.value: serving.temperatures.get(kind, 1.0) for kind in Kind}
        body["fingerprint"] = serving.fingerprint
    body["limits"] = _limits(request.state.settings)
    return JSONResponse(body, status_code=200 if lifecycle.is_ready else 503)


# What a caller or its operator can run into; null: no bound of its own.
LIMITS = (
    "max_inflight",
    "tenant_inflight",
    "inflight_tokens",
    "receiving_bytes",
    "max_reads",
    "deadline_seconds",
    "body_limit_bytes",
    "body_seconds",
    "max_num_seqs",
    "max_batched_tokens",
)


def _limits(settings: Settings) -> dict[str, float | None]:
    return {name: getattr(settings, name) for name in LIMITS}
