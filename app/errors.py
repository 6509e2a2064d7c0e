"""What the service refuses or fails at, as one tree. No HTTP here: `app.problems` maps codes to statuses.

    ServiceError
    ├── RequestRejected         the caller's request cannot be accepted; lists problems
    │   ├── MalformedBody       not the JSON we take
    │   ├── BodyTooLarge
    │   ├── UnsupportedMediaType
    │   ├── SchemaRejected      JSON, but not a decision request
    │   └── NotOffered          a decision request, for what is not here: another model, images
    ├── Unauthenticated
    │   ├── NoKey
    │   └── UnknownKey          nobody's
    ├── BodyTooSlow             the body did not arrive in time
    ├── Overloaded              healthy and full
    ├── QuotaExceeded           healthy, and this tenant has its share
    ├── NotServing              cannot serve
    │   ├── Starting
    │   ├── Draining
    │   └── EngineDead
    ├── DeadlineExceeded        accepted, not finished in time
    └── InternalError           our bug

`app.canvas.errors` is the other tree; both are in the table of `app.problems`.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.canvas.errors import Problem


class ServiceError(Exception):
    """Base of everything the service refuses or fails at."""


class RequestRejected(ServiceError):
    """The request cannot be accepted."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(type(self).__name__)
        self.problems = problems


class MalformedBody(RequestRejected):
    """The body is not JSON as we take it."""


class BodyTooLarge(RequestRejected):
    """The body is over the byte limit."""


class UnsupportedMediaType(RequestRejected):
    """The body is not declared as JSON, or is encoded."""


class SchemaRejected(RequestRejected):
    """The body is JSON but not a decision request."""


class NotOffered(RequestRejected):
    """The request asks for what this service does not have."""


class Unauthenticated(ServiceError):
    """Nobody knows whose the request is."""

    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}


class NoKey(Unauthenticated):
    """The request has no key."""


class UnknownKey(Unauthenticated):
    """The request has a key that is nobody's."""


class BodyTooSlow(ServiceError):
    """The body did not arrive in time."""


class Overloaded(ServiceError):
    """As much as allowed is being served."""


class QuotaExceeded(ServiceError):
    """As many requests of one tenant as allowed are being served."""


class NotServing(ServiceError):
    """This process cannot serve now."""


class Starting(NotServing):
    """The engine is not ready yet."""


class Draining(NotServing):
    """The process is shutting down."""


class EngineDead(NotServing):
    """The engine failed and this process will exit."""


class DeadlineExceeded(ServiceError):
    """The request was not finished in time."""


class InternalError(ServiceError):
    """A broken invariant."""
