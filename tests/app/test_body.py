"""Bodies: strict JSON, counted as it arrives."""

from __future__ import annotations

import json
import signal
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from backports import zstd
from hypothesis import given
from starlette.requests import Request
from starlette.types import Message

from app.body import MAX_DEPTH, parse_json, receive_json
from app.canvas.json import Json
from app.errors import BodyTooLarge, MalformedBody, RequestRejected, UnsupportedMediaType
from app.offload import INLINE_SIZE
from tests.app.canvas.rubrics import json_values

LIMIT_BYTES = 1000


def nested(depth: int) -> bytes:
    """Arrays in arrays."""
    return b"[" * depth + b"]" * depth


BRACKETS = ["[" * 100, '"{' * 100, "\\[" * 100]


@dataclass(frozen=True)
class Refused:
    id: str
    body: bytes
    code: str


REFUSED = (
    Refused("nothing", b"", "invalid_json"),
    Refused("white space", b" \n", "invalid_json"),
    Refused("text", b"state=1", "invalid_json"),
    Refused("half a document", b'{"state": "a', "invalid_json"),
    Refused("two documents", b"{} {}", "invalid_json"),
    Refused("a comment", b"{} // c", "invalid_json"),
    Refused("a trailing comma", b"[1,]", "invalid_json"),
    Refused("single quotes", b"{'a': 1}", "invalid_json"),
    Refused("a raw line break in a string", b'"a\nb"', "invalid_json"),
    Refused("an unknown escape", b'"\\x41"', "invalid_json"),
    Refused("a byte order mark", b"\xef\xbb\xbf{}", "invalid_json"),
    Refused("UTF-16", '{"a": 1}'.encode("utf-16"), "invalid_json"),
    Refused("bytes that are no UTF-8", b'"\xff"', "invalid_json"),
    Refused("a surrogate in bytes", b'"\xed\xa0\x80"', "invalid_json"),
    Refused("closing first", b"]" * 100 + b"[" * 10, "invalid_json"),
    Refused("a leading zero", b"01", "invalid_json"),
    Refused("a plus sign", b"+1", "invalid_json"),
    Refused("NaN", b'{"a": NaN}', "non_finite_number"),
    Refused("Infinity", b"[Infinity]", "non_finite_number"),
    Refused("-Infinity", b"[-Infinity]", "non_finite_number"),
    Refused("a float over the range", b"[1e999]", "non_finite_number"),
    Refused("a float below the range", b"[-1e999]", "non_finite_number"),
    Refused("5000 digits", b"9" * 5000, "number_too_long"),
    Refused("65 digits", b"9" * 65, "number_too_long"),
    Refused("a lone high surrogate", b'"\\ud800"', "lone_surrogate"),
    Refused("a lone low surrogate", b'"\\uDC00"', "lone_surrogate"),
    Refused("surrogates the wrong way round", b'"\\udc00\\ud800"', "lone_surrogate"),
    Refused("a lone surrogate in a key", b'{"\\ud800": 1}', "lone_surrogate"),
    Refused("a lone surrogate deep inside", b'[{"a": ["x", "\\ud83d!"]}]', "lone_surrogate"),
    Refused("a key twice", b'{"a": 1, "a": 1}', "duplicate_key"),
    Refused("a key twice, spelled differently", b'{"a": 1, "\\u0061": 2}', "duplicate_key"),
    Refused("a key twice, inside", b'[{"b": {"a": 1, "a": 2}}]', "duplicate_key"),
    Refused("arrays one too deep", nested(MAX_DEPTH + 1), "too_deep"),
    Refused("objects one too deep", b'{"a":' * MAX_DEPTH + b"{}" + b"}" * MAX_DEPTH, "too_deep"),
    Refused("a depth bomb", b"[" * 200_000, "too_deep"),
    Refused("depth behind an escaped quote", b'["\\"",' + nested(MAX_DEPTH) + b"]", "too_deep"),
    Refused("depth behind an escaped backslash", b'["\\\\",' + nested(MAX_DEPTH) + b"]", "too_deep"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Refused) -> None:
    """S9: what has broken servers is refused by its rule, at the root, and the message quotes nothing."""
    with pytest.raises(MalformedBody) as refusal:
        parse_json(case.body)
    (problem,) = refusal.value.problems
    assert (problem.pointer, problem.code) == ("", case.code)
    assert problem.message


@dataclass(frozen=True)
class Taken:
    id: str
    body: bytes
    value: Any


TAKEN = (
    Taken("an object", b' {"a": [1, 2.5, true, null, "x"]} ', {"a": [1, 2.5, True, None, "x"]}),
    Taken("64 digits", b"9" * 64, int("9" * 64)),
    Taken("a float below the smallest", b"1e-999", 0.0),
    Taken("a whole surrogate pair", b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
    Taken("a pair beside other escapes", b'["\\u00e4\\ud83d\\ude00", "\\n"]', ["ä\N{GRINNING FACE}", "\n"]),
    Taken("UTF-8", '"ä東"'.encode(), "ä東"),
    Taken("a zero character", b'"\\u0000"', "\0"),
    Taken("equal keys in different objects", b'[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
    Taken("the deepest arrays", nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    Taken("the deepest arrays side by side", b"[" + b"[]," * 100 + b"[]]", [[]] * 101),
    Taken("brackets in strings", json.dumps(BRACKETS).encode(), BRACKETS),
)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.id)
def test_taken(case: Taken) -> None:
    """JSON of RFC 8259 is taken as it is, up to the bounds."""
    assert parse_json(case.body) == case.value


@given(json_values())
def test_any_json_is_taken_as_json_takes_it(value: Json) -> None:
    """Strictness refuses nothing that is JSON: both spellings of any value come back as the value."""
    for ensure_ascii in (True, False):
        assert parse_json(json.dumps(value, ensure_ascii=ensure_ascii).encode()) == value


@contextmanager
def at_most(cpu_seconds: int) -> Iterator[None]:
    """Break off what computes longer. Not wall time: test machines are shared."""

    def expire(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"took more than {cpu_seconds} s")

    before = signal.signal(signal.SIGVTALRM, expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


MEGABYTE = 1 << 20
BOMBS = {
    "opening brackets": b"[" * MEGABYTE,
    "closing brackets": b"]" * MEGABYTE,
    "quotes": b'"' * MEGABYTE,
    "escaped quotes": b'\\"' * (MEGABYTE // 2),
    "a string of escaped quotes": b'"' + b'\\"' * (MEGABYTE // 2) + b'"',
    "an unfinished string of escaped quotes": b'"' + b'\\"' * (MEGABYTE // 2),
    "an unfinished string of backslashes": b'"' + b"\\" * MEGABYTE,
    "surrogates": b'"' + b"\\ud83d" * (MEGABYTE // 6) + b'"',
    "digits of a float": b"1" * MEGABYTE + b".0",
    "empty objects": b"[" + b"{}," * (MEGABYTE // 3) + b"{}]",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_megabyte_is_read_in_linear_time(bomb: bytes) -> None:
    """S9: whatever it is made of. It takes a second or two; a quadratic scan would take hours."""
    with at_most(cpu_seconds=30):
        try:
            assert parse_json(bomb) is not None
        except MalformedBody as refusal:
            assert refusal.problems  # noqa: PT017 - either way is right, only time counts


def request_of(chunks: Sequence[bytes], headers: dict[str, str]) -> Request:
    """A request whose body arrives in these chunks."""
    messages: Iterator[Message] = iter(
        {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1} for i, chunk in enumerate(chunks)
    )

    async def receive() -> Message:
        return next(messages)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, receive)


JSON_HEADERS = {"content-type": "application/json"}


@pytest.mark.parametrize("chunk_bytes", [1, 333, LIMIT_BYTES])
async def test_a_body_at_the_byte_limit(chunk_bytes: int) -> None:
    """S8: as many bytes as allowed are taken, one more is refused, however they are cut and whatever was declared."""
    fits = b'"' + b"a" * (LIMIT_BYTES - 2) + b'"'
    for body, is_taken in ((fits, True), (fits + b" ", False)):
        chunks = [body[i : i + chunk_bytes] for i in range(0, len(body), chunk_bytes)]
        request = request_of(chunks, {**JSON_HEADERS, "content-length": "3"})
        if is_taken:
            assert await receive_json(request, LIMIT_BYTES) == "a" * (LIMIT_BYTES - 2)
        else:
            with pytest.raises(BodyTooLarge) as refusal:
                await receive_json(request, LIMIT_BYTES)
            assert [problem.code for problem in refusal.value.problems] == ["body_too_large"]
            assert str(LIMIT_BYTES) in refusal.value.problems[0].message


async def test_the_rest_of_a_body_over_the_limit_is_not_received() -> None:
    """S8: reading stops with the chunk that goes over."""
    received = []

    async def receive() -> Message:
        received.append(1)
        return {"type": "http.request", "body": b"a" * 400, "more_body": True}

    scope = {"type": "http", "headers": [(b"content-type", b"application/json")]}
    with pytest.raises(BodyTooLarge):
        await receive_json(Request(scope, receive), LIMIT_BYTES)
    assert len(received) == 3


async def test_long_bodies_are_parsed_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: one does not hold up everybody else's answer; a short one is not worth a thread. A refusal comes through."""
    threads: list[int] = []

    def watched(body: bytes) -> Json:
        threads.append(threading.get_ident())
        return parse_json(body)

    monkeypatch.setattr("app.body.parse_json", watched)
    for length in (INLINE_SIZE, INLINE_SIZE + 1):
        assert await receive_json(request_of([b"1".rjust(length)], JSON_HEADERS), 2 * length) == 1
    at_bound, longer = threads
    assert at_bound == threading.get_ident() != longer
    with pytest.raises(MalformedBody):
        await receive_json(request_of([b"[" * (INLINE_SIZE + 1)], JSON_HEADERS), 2 * INLINE_SIZE)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/vnd.api+json"],
)
@pytest.mark.parametrize("encoding", [{}, {"content-encoding": "identity"}])
async def test_media_types_taken(content_type: str, encoding: dict[str, str]) -> None:
    """JSON by any of its names."""
    request = request_of([b"[", b"1]"], {"content-type": content_type, **encoding})
    assert await receive_json(request, LIMIT_BYTES) == [1]


@dataclass(frozen=True)
class BadHeaders:
    id: str
    headers: dict[str, str]
    code: str


BAD_HEADERS = (
    BadHeaders("none", {}, "unsupported_media_type"),
    BadHeaders("text", {"content-type": "text/plain"}, "unsupported_media_type"),
    BadHeaders("form", {"content-type": "application/x-www-form-urlencoded"}, "unsupported_media_type"),
    BadHeaders("JSON in a parameter", {"content-type": "text/plain; a=application/json"}, "unsupported_media_type"),
    BadHeaders("JSON lines", {"content-type": "application/jsonl"}, "unsupported_media_type"),
    BadHeaders("gzip", {**JSON_HEADERS, "content-encoding": "gzip"}, "unsupported_encoding"),
    BadHeaders("no encoding's name", {**JSON_HEADERS, "content-encoding": "zstandard"}, "unsupported_encoding"),
    BadHeaders("encoded as nothing", {**JSON_HEADERS, "content-encoding": ","}, "unsupported_encoding"),
    BadHeaders("compressed twice", {**JSON_HEADERS, "content-encoding": "identity, zstd"}, "unsupported_encoding"),
)


@pytest.mark.parametrize("case", BAD_HEADERS, ids=lambda case: case.id)
async def test_media_types_refused(case: BadHeaders) -> None:
    """S8: what is not declared as JSON, in an encoding that is taken, is refused before a byte is read."""

    async def receive() -> Message:
        raise AssertionError("read")

    raw = [(name.encode(), value.encode()) for name, value in case.headers.items()]
    with pytest.raises(UnsupportedMediaType) as refusal:
        await receive_json(Request({"type": "http", "headers": raw}, receive), LIMIT_BYTES)
    rejected: RequestRejected = refusal.value
    assert [problem.code for problem in rejected.problems] == [case.code]


async def test_encodings_of_two_headers_are_both_seen() -> None:
    """S8: the second one says that the body is encoded twice."""
    raw = [(b"content-type", b"application/json"), (b"content-encoding", b"zstd"), (b"content-encoding", b"zstd")]
    with pytest.raises(UnsupportedMediaType):
        await receive_json(Request({"type": "http", "headers": raw}), LIMIT_BYTES)


ZSTD_HEADERS = {**JSON_HEADERS, "content-encoding": "zstd"}


@pytest.mark.parametrize("encoding", ["zstd", " ZSTD "])
@pytest.mark.parametrize("chunk_bytes", [1, LIMIT_BYTES])
async def test_zstd_bodies_at_the_byte_limit(chunk_bytes: int, encoding: str) -> None:
    """S8: a body that is encoded may hold as many bytes as another may have, and not one more."""
    fits = b'"' + b"a" * (LIMIT_BYTES - 2) + b'"'
    for body, is_taken in ((fits, True), (fits + b" ", False)):
        encoded = zstd.compress(body)
        chunks = [encoded[i : i + chunk_bytes] for i in range(0, len(encoded), chunk_bytes)]
        request = request_of(chunks, {**JSON_HEADERS, "content-encoding": encoding})
        if is_taken:
            assert await receive_json(request, LIMIT_BYTES) == "a" * (LIMIT_BYTES - 2)
        else:
            with pytest.raises(BodyTooLarge):
                await receive_json(request, LIMIT_BYTES)


async def test_both_forms_of_an_encoded_body_are_counted() -> None:
    """What tenants may have in memory: the bytes that arrive, and those they hold."""
    taken: list[int] = []
    body = b"[" + b"1," * 400 + b"1]"
    await receive_json(request_of([zstd.compress(body)], ZSTD_HEADERS), LIMIT_BYTES, take=taken.append)
    assert [count for count in taken if count] == [len(zstd.compress(body)), len(body)]


async def test_a_bomb_is_not_decoded() -> None:
    """S8: 30 kilobytes that hold a gigabyte are refused with the limit's worth of memory."""
    bomb = b"".join(map(zstd.ZstdCompressor().compress, [bytes(1 << 20)] * 1023))
    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        await receive_json(request_of([bomb], ZSTD_HEADERS), MEGABYTE)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4 * MEGABYTE


def frame_of(window_log: int) -> bytes:
    """An empty object, in a frame that asks for so much memory."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: window_log}
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(b"{}") + compressor.flush()


NOT_DECODABLE = {
    "nothing": b"",
    "plain JSON": b"{}",
    "half a frame": zstd.compress(b"[1, 2, 3, 4]")[:-2],
    "a frame and more": zstd.compress(b"{}") + b" ",
    "two frames": zstd.compress(b"{}") + zstd.compress(b" "),
    "empty frames without end": zstd.compress(b"") * 10_000,
    "a flipped bit": bytes([*zstd.compress(b"{}")[:5], 0xFF, *zstd.compress(b"{}")[6:]]),
    "a window of 128 MiB": frame_of(27),
}


@pytest.mark.parametrize("body", NOT_DECODABLE.values(), ids=NOT_DECODABLE)
async def test_what_is_not_one_whole_frame_is_malformed(body: bytes) -> None:
    """S8: and quotes nothing."""
    with pytest.raises(MalformedBody) as refusal:
        await receive_json(request_of([body], ZSTD_HEADERS), MEGABYTE)
    assert [problem.code for problem in refusal.value.problems] == ["invalid_encoding"]


async def test_a_window_of_eight_mebibytes_is_taken() -> None:
    """RFC 9659: as much as every decoder of bodies takes."""
    assert await receive_json(request_of([frame_of(23)], ZSTD_HEADERS), MEGABYTE) == {}
