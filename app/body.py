"""Bytes of a request body to a JSON value, strictly.

Python's `json` takes more than JSON (NaN, lone surrogates, the last of duplicate keys, numbers of any length), and each
of these has broken a server. Bytes are counted as they arrive, whatever `Content-Length` says.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NoReturn

from starlette.requests import Request

from app.canvas.errors import Problem
from app.canvas.json import Json
from app.encoding import Encoding, NotDecodable, decode_zstd
from app.errors import BodyTooLarge, BodyTooSlow, MalformedBody, RequestRejected, UnsupportedMediaType
from app.offload import beside_the_loop, in_a_thread

MAX_DEPTH = 64
# Beyond any level, threshold or seed, and far below Python's own limit for converting digits.
MAX_INTEGER_DIGITS = 64

# Brackets in strings do not nest. An unfinished string runs to the end, so the scan stays linear.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_SURROGATE = re.compile("[\ud800-\udfff]")


async def receive_json(
    request: Request,
    limit_bytes: int,
    *,
    seconds: float | None = None,
    take: Callable[[int], None] = lambda _: None,
) -> Json:
    """The body as a JSON value.

    Args:
        limit_bytes: it may have, encoded and decoded.
        seconds: that it may take to arrive.
        take: is told of bytes before they are kept, and may raise.

    Raises:
        UnsupportedMediaType: not declared as JSON, or encoded as we do not take it.
        BodyTooLarge: it has more than `limit_bytes` bytes.
        BodyTooSlow: not all of it arrives in time.
        MalformedBody: not JSON as we take it, or not encoded as declared.
    """
    _check_media_type(request)
    encoding = _encoding_of(request)
    try:
        async with asyncio.timeout(seconds):
            body = await _receive(request, limit_bytes, take)
    except TimeoutError:
        raise BodyTooSlow from None
    if encoding is Encoding.ZSTD:
        # A few bytes may hold as many as are allowed.
        body = await in_a_thread(_decode, body, limit_bytes)
        take(len(body))
    return await beside_the_loop(len(body), parse_json, body)


def parse_json(body: bytes) -> Json:
    """Strict JSON (RFC 8259) of bounded depth, without duplicate keys.

    Raises:
        MalformedBody: saying which rule was broken.
    """
    if _depth(body) > MAX_DEPTH:
        raise _malformed("too_deep", f"arrays and objects may nest {MAX_DEPTH} levels")
    try:
        text = body.decode("utf-8")
        value: Json = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_short_integer,
        )
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise _malformed("invalid_json", "the body must be JSON in UTF-8") from None
    # A surrogate can only come from an escape, and only then is the value worth another look.
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise _malformed("lone_surrogate", "strings must be whole Unicode characters")
    return value


async def _receive(request: Request, limit_bytes: int, take: Callable[[int], None]) -> bytes:
    received = bytearray()
    async for chunk in request.stream():
        if len(received) + len(chunk) > limit_bytes:
            raise _too_large(limit_bytes)
        take(len(chunk))
        received += chunk
    return bytes(received)


def _decode(body: bytes, limit_bytes: int) -> bytes:
    try:
        decoded = decode_zstd(body, limit_bytes)
    except NotDecodable:
        raise _malformed("invalid_encoding", "the body must be one whole Zstandard frame, as it was declared") from None
    if len(decoded) > limit_bytes:
        raise _too_large(limit_bytes)
    return decoded


def _check_media_type(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaType(_problem("unsupported_media_type", "send Content-Type: application/json"))


def _encoding_of(request: Request) -> Encoding:
    """All of its headers count: it may be encoded twice, in two lines."""
    named = ",".join(request.headers.getlist("content-encoding")) or Encoding.IDENTITY
    try:
        return Encoding(named.strip().lower())
    except ValueError:
        message = "send the body with Content-Encoding: zstd, or without one"
        raise UnsupportedMediaType(_problem("unsupported_encoding", message)) from None


def _depth(body: bytes) -> int:
    brackets = _STRING.sub(b"", body).translate(None, delete=_NOT_BRACKETS)
    return max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _malformed("duplicate_key", "an object may hold a key once")
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise _malformed("non_finite_number", "numbers must be finite")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _malformed("non_finite_number", "numbers must be finite")
    return value


def _short_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _malformed("number_too_long", f"an integer may have {MAX_INTEGER_DIGITS} digits")
    return int(text)


def _problem(code: str, message: str) -> Problem:
    return Problem(pointer="", code=code, message=message)


def _too_large(limit_bytes: int) -> RequestRejected:
    return BodyTooLarge(_problem("body_too_large", f"the body may have {limit_bytes} bytes"))


def _malformed(code: str, message: str) -> RequestRejected:
    return MalformedBody(_problem(code, message))
