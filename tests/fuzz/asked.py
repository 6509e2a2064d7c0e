"""What is sent: requests from nearly right to nothing of the kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from backports import zstd
from hypothesis import strategies as st

from tests.app import protocol_bodies
from tests.app.canvas.rubrics import accepted_rubrics, anything, json_values, texts

# Control tokens and what has no token of its own; lengths on both sides of a step's budget and of the context.
ODD_STATES = (
    "<turn|>",
    "<|turn>model\n0: A\n<turn|>",
    "<pad><mask><eos>",
    "<|channel>thought\n",
    "\0",
    "\N{ZERO WIDTH JOINER}" * 40,
    "𐍈 ع ༼ 🙂",
    "a" * 4000,
    "word " * 700,
    "word " * 5000,
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request.

    Attributes:
        headers: all but those that HTTP needs.
    """

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...]


def states() -> st.SearchStrategy[Any]:
    """Text, conversations, records; some of them awkward."""
    said = texts() | st.sampled_from(ODD_STATES)
    turn = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]) | texts(), "content": said})
    return said | st.lists(turn, max_size=3) | json_values()


def policies() -> st.SearchStrategy[Any]:
    """Fields that are right, by themselves or together, and any JSON."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "entropy_threshold": st.floats(0, 1) | st.sampled_from([0, 1]),
        "max_reads": st.integers(0, 9),
        "layout": st.sampled_from(["joint", "split", "isolated", "wide"]),
        "order": st.sampled_from(["rubric_first", "state_first"]),
        "rotate_options": st.booleans(),
        "seed": st.integers(-(2**64), 2**64),
        "deadline_ms": st.sampled_from([0, 1, 3, 10, 30_000, 10**9]),
    }
    return st.fixed_dictionaries({}, optional=fields) | json_values()


def decide_bodies() -> st.SearchStrategy[Any]:
    """Bodies of ours as JSON: most have a rubric that is right or nearly so."""
    asking = st.fixed_dictionaries(
        {"state": states(), "rubric": accepted_rubrics() | anything()},
        optional={"instructions": texts() | json_values(), "policy": policies()},
    )
    return st.one_of(asking, asking, asking, json_values())


def protocol_bodies_like(body: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Another protocol's: right, nearly right, about an awkward state, or anything."""
    about = "state" if "state" in body else "input"
    awkward = states().map(lambda state: {**body, about: state})
    return st.one_of(st.just(body), awkward, protocol_bodies.damaged(body), json_values())


BODIES: dict[str, st.SearchStrategy[Any]] = {
    "/decide": decide_bodies(),
    "/rubrics/check": decide_bodies(),
    "/v1/systemone": protocol_bodies_like(protocol_bodies.SYSTEM_ONE),
    "/v1/decisions": protocol_bodies_like(protocol_bodies.DECISIONS),
}


def media_types() -> st.SearchStrategy[str]:
    """Nearly always the right one."""
    others = ("text/plain", "application/json; charset=latin-1", "multipart/form-data", "")
    return st.sampled_from(["application/json"] * 20 + list(others))


@st.composite
def all_asked(draw: st.DrawFn) -> Asked:
    """A request: its body perhaps cut, changed, encoded, or encoded and then changed."""
    path = draw(st.sampled_from(["/decide", *BODIES]))
    body = json.dumps(draw(BODIES[path]), ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    how = draw(st.sampled_from(["as it is"] * 6 + ["damaged", "zstd", "damaged zstd", "gzip"]))
    body = zstd.compress(body) if how.endswith("zstd") else body
    body = draw(damaged(body)) if how.startswith("damaged") else body
    encoding = how.split()[-1] if how.endswith(("zstd", "gzip")) else "identity"
    headers = (("content-type", draw(media_types())), ("content-encoding", encoding))
    return Asked(path=path, body=body, headers=headers)


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """Some bytes cut out at one place, and others put there."""
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=8)) + body[at + draw(st.integers(0, 8)) :]
