"""Bodies of other protocols: good ones, and the same with anything put in or taken out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.app.canvas.rubrics import canaries, json_values

SYSTEM_ONE: dict[str, Any] = {
    "model": "jev-latest",
    "state": {"message": "Hello."},
    "questions": {
        "refill": {
            "type": "noul",
            "instructions": {"task": "A refill?"},
            "criteria": {"true": ["asks"], "false": None},
        },
        "team": {"type": "choice", "instructions": "Team?", "criteria": {"billing": None, "clinic": {"owns": "pain"}}},
        "pain": {"type": "score", "criteria": ["none", {"label": "some"}, ["much"]]},
    },
    "instructions": "Be strict.",
    "x_policy": {"layout": "joint", "max_reads": 1},
}
PARTS = [{"type": "input_text", "text": "Hello."}, {"type": "input_json", "data": {"n": 1}}]
DECISIONS: dict[str, Any] = {
    "model": "gpt-6-luna",
    "input": [
        {"role": "user", "content": PARTS},
        {"type": "function_call", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "output": PARTS},
    ],
    "questions": [
        {"type": "predicate", "name": "refill", "instructions": PARTS},
        {"type": "choice", "instructions": "Team?", "choices": [{"value": "a", "description": "b"}, {"value": True}]},
        {
            "type": "score",
            "instructions": "Pain?",
            "levels": [{"label": "none"}, {"label": "much", "description": "a"}],
        },
    ],
    "x_policy": {"seed": 1},
}


@st.composite
def damaged(draw: st.DrawFn, body: dict[str, Any]) -> Any:
    """A body of which a few places hold something else, or nothing; leaves of what is put in are canaries."""
    changed = deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        places: list[tuple[Any, Any]] = [(changed, key) for key in changed]
        found: list[tuple[Any, Any]] = []
        while places:
            container, key = places.pop()
            found.append((container, key))
            below = container[key]
            places += [(below, inner) for inner in (below if isinstance(below, dict) else range(_length(below)))]
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        if draw(st.booleans()):
            container[key] = draw(json_values(canaries() | st.integers() | st.none()))
        else:
            del container[key]
    return changed


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0
