"""The first steps of every route that reads: may it be served now, by whom is it asked, what is its body."""

from __future__ import annotations

from starlette.requests import Request

from app.admission import Admission
from app.body import receive_json
from app.canvas.json import Json
from app.lifecycle import Lifecycle
from app.settings import Settings
from app.tenant import Tenant


def tenant_of(request: Request) -> Tenant:
    """Who the request is from, as `app.authentication` found out."""
    tenant: Tenant = request.scope["onestep.tenant"]
    return tenant


async def take_body(request: Request) -> Json:
    """The body of a request that could be served now.

    It holds no permit while it arrives, so that slow callers keep nobody else from being served. What bodies of a
    tenant may take of memory meanwhile is bounded.

    Raises:
        NotServing, Overloaded, QuotaExceeded: not now.
        UnsupportedMediaType, BodyTooLarge, BodyTooSlow, MalformedBody: it cannot be understood.
    """
    lifecycle: Lifecycle = request.state.lifecycle
    admission: Admission = request.state.admission
    settings: Settings = request.state.settings
    lifecycle.require_ready()
    tenant = tenant_of(request)
    admission.require_room(tenant)
    with admission.arriving_bytes(tenant).account() as account:
        limit, seconds = settings.body_limit_bytes, settings.body_seconds
        return await receive_json(request, limit, seconds=seconds, take=account.take)
