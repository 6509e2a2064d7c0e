"""The input of OpenAI's Decisions API as a state: text as text, and messages and tool calls as chat messages."""

from __future__ import annotations

from collections.abc import Mapping

from app.canvas.errors import Problem
from app.canvas.json import Json, pointer, to_text
from app.errors import NotOffered, SchemaRejected

Place = tuple[str | int, ...]

# Which field of a part is shown.
PARTS: Mapping[str, str] = {
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "input_json": "data",
}
IMAGE = "input_image"
ROLES = ("user", "assistant", "system", "developer")
# Which field of a tool call, or of what came back from it, is shown.
TOOL_CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def state_of(value: Json) -> Json:
    """An input as a state.

    Raises:
        SchemaRejected: it is neither text nor a list of messages and tool calls.
        NotOffered: there is an image in it.
    """
    if not isinstance(value, list):
        return value
    return [_message(item, ("input", index)) for index, item in enumerate(value)]


def text_of_parts(value: Json, place: Place) -> str:
    """Text, or a list of parts, each on a line of its own.

    Raises:
        SchemaRejected: it is neither.
        NotOffered: there is an image in it.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _refusal(place, "text_type", "must be text, or a list of parts")
    return "\n".join(_part(part, (*place, index)) for index, part in enumerate(value))


def _message(item: Json, place: Place) -> dict[str, Json]:
    kind = _kind(item, "message")
    match item:
        case {"role": str(role), "content": content} if kind == "message" and role in ROLES:
            return {"role": role, "content": text_of_parts(content, (*place, "content"))}
        case {"name": str(name)} if kind in TOOL_CALLS:
            return {"role": "tool call", "content": f"{name} {_required(item, TOOL_CALLS[kind], place)}"}
        case {"output": output} if kind in TOOL_OUTPUTS:
            return {"role": "tool", "content": text_of_parts(output, (*place, "output"))}
        case _:
            raise _refusal(place, "input_type", "must be a message, a tool call or its output")


def _part(part: Json, place: Place) -> str:
    kind = _kind(part)
    if kind == IMAGE:
        raise NotOffered(Problem(pointer=pointer(*place), code="no_images", message="images are not read here"))
    if kind not in PARTS:
        raise _refusal(place, "part_type", "must be a part that is text or JSON")
    return _required(part, PARTS[kind], place)


def _required(item: Json, field: str, place: Place) -> str:
    assert isinstance(item, Mapping), "only objects have a kind; this is a bug"
    value = item.get(field)
    if not isinstance(value, str | list | Mapping) or (field != "data" and not isinstance(value, str)):
        raise _refusal((*place, field), "text_type", "must be there, and text")
    return to_text(value)


def _kind(item: Json, usual: str = "") -> str:
    """What an item says it is, or usually is if it says nothing; empty if that is no kind."""
    kind = item.get("type", usual) if isinstance(item, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _refusal(place: Place, code: str, message: str) -> SchemaRejected:
    return SchemaRejected(Problem(pointer=pointer(*place), code=code, message=message))
