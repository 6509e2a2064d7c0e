"""Content encodings of request bodies: none, or Zstandard (RFC 8878), which the field's client SDKs send."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

# RFC 9659: what a decoder has to keep of what it has decoded, 8 MiB; a frame may ask for far more.
_OPTIONS: Mapping[int, int] = {DecompressionParameter.window_log_max: 23}


class Encoding(StrEnum):
    """What is taken."""

    IDENTITY = "identity"
    ZSTD = "zstd"


class NotDecodable(Exception):
    """The bytes are not what they are said to be."""


def decode_zstd(encoded: bytes, most_bytes: int) -> bytes:
    """What a single frame holds, but not much more of it than so many bytes.

    One frame, as encoders write it: a body of a hundred thousand empty ones would be slow to go through.

    Raises:
        NotDecodable: it is no whole frame, or something follows it.
    """
    frame = ZstdDecompressor(options=_OPTIONS)
    try:
        decoded = frame.decompress(encoded, most_bytes + 1)
    except ZstdError:
        raise NotDecodable from None
    if len(decoded) <= most_bytes and (not frame.eof or frame.unused_data):
        raise NotDecodable
    return decoded
