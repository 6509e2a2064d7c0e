"""Pure ASGI middleware that lets in whoever has a key.

Everything needs one but what `PUBLIC_PATHS` lists, unknown paths included: a route that is added later is closed until
it is listed. (A list of what is closed has left routes open elsewhere.)
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access import Access
from app.errors import NoKey, Unauthenticated, UnknownKey
from app.problems import ProblemHandler
from app.tenant import ANYBODY, Tenant

# Probes and scrapers have no keys, and neither page says anything of a request.
PUBLIC_PATHS = frozenset({"/health", "/metrics"})


class Authentication:
    """Puts the tenant a request is from into its scope, or answers 401."""

    def __init__(self, app: ASGIApp, *, access: Access, problems: ProblemHandler) -> None:
        self._app, self._access, self._problems = app, access, problems

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope["onestep.tenant"] = self._tenant(scope)
            except Unauthenticated as refusal:
                answer = await self._problems(Request(scope), refusal)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _tenant(self, scope: Scope) -> Tenant:
        if self._access.is_open or scope["path"] in PUBLIC_PATHS:
            return ANYBODY
        headers = dict(scope["headers"])
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        key = token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        tenant = self._access.tenant_of(key)
        if tenant is None:
            raise UnknownKey if key else NoKey
        return tenant
