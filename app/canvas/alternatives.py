"""Alternatives: the options that a schema admits, however it lists them."""

from __future__ import annotations

from collections.abc import Sequence

from app.canvas.json import JsonScalar, identity, to_text
from app.canvas.levels import LEVEL_KEYWORDS, levels_of
from app.canvas.option import NO, YES, Option, explain, is_scalar, make_option
from app.canvas.site import Reader, Site

LISTS = ("oneOf", "anyOf")
# JSON knows six types, JSON Schema one more.
MAX_TYPES = 7
OPTION_DESCRIPTIONS = "x-option-descriptions"
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
NO_OPTION = "must be a string, a number (not a huge one), a boolean or null"


def options_of(site: Site, reader: Reader, *, least: int = 2, share_a_slot: bool = True) -> tuple[Option, ...]:
    """The options of a schema, in order: `enum`, `const`, booleans, null, integers with bounds, and lists of these.

    Complains about everything wrong, fewer than `least` and more than can share a slot included; what it returns then
    is not used.
    """
    complaints = reader.complaints
    found: list[Option] = []
    stack = [site]
    while stack:
        alternative = stack.pop()
        keyword = next(filter(alternative.has, LISTS), None)
        if keyword is None:
            own = _own_options(alternative, reader)
            found.extend(own if alternative is site else _explained(own, alternative, reader))
            continue
        reader.refuse(alternative, frozenset({keyword, "type"}) if alternative is site else frozenset({keyword}))
        stack.extend(reversed(reader.open_all(alternative, keyword, reader.limits.max_options)))
    if site.has(*LISTS):
        _check_types(found, site, reader)
        if reader.complaints == complaints:
            found = described(found, site, reader)
    if reader.complaints == complaints:
        most = reader.limits.max_labels if share_a_slot else reader.limits.max_options
        check_options(found, site, reader, least, most)
    return tuple(found)


def lists_values(site: Site) -> bool:
    """Whether a schema says which values it admits, whatever type it says they have."""
    return site.has("enum", "const", *LISTS)


def declared_types(site: Site) -> tuple[str, ...]:
    """What `type` says, as a tuple; nothing if it is not what `type` may say."""
    declared = site.schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return tuple(map(str, names)) if len(names) <= MAX_TYPES and all(isinstance(name, str) for name in names) else ()


def _own_options(site: Site, reader: Reader) -> Sequence[Option]:
    if site.has("const"):
        return _const_option(site, reader)
    if site.has("enum"):
        return _enum_options(site, reader)
    return _typed_options(site, reader)


def _explained(options: Sequence[Option], site: Site, reader: Reader) -> Sequence[Option]:
    """The options of one alternative among several, with its texts, if it is one option's."""
    if site.has("const") or declared_types(site) == ("null",):
        return options  # their texts are their own
    if len(options) != 1:
        reader.hide_texts(site)
        return options
    title, description = reader.text(site, "title"), reader.text(site, "description")
    return [make_option(options[0].value, title, description)] if title or description else options


def _const_option(site: Site, reader: Reader) -> Sequence[Option]:
    reader.refuse(site, frozenset({"type", "const"}))
    value = site.schema["const"]
    if not is_scalar(value):
        reader.complain(site.at("const"), "bad_option", NO_OPTION)
        return ()
    reader.count_chars(site.at("const"), to_text(value))
    options = [make_option(value, reader.text(site, "title"), reader.text(site, "description"))]
    _check_types(options, site, reader)
    return options


def _enum_options(site: Site, reader: Reader) -> Sequence[Option]:
    reader.refuse(site, frozenset({"type", "enum"}))
    values = site.schema["enum"]
    if not isinstance(values, list) or not 1 <= len(values) <= reader.limits.max_options:
        most = reader.limits.max_options
        reader.complain(site.at("enum"), "bad_options", f"must be an array of at most {most} values, and not empty")
        return ()
    reader.visit(site.at("enum"), len(values))
    for index, value in enumerate(values):
        if not is_scalar(value):
            reader.complain((*site.at("enum"), index), "bad_option", NO_OPTION)
        else:
            reader.count_chars(site.at("enum"), to_text(value))
    options = described([make_option(value) for value in values if is_scalar(value)], site, reader)
    _check_types(options, site, reader)
    return options


def _typed_options(site: Site, reader: Reader) -> Sequence[Option]:
    types = declared_types(site)
    is_grid = site.has("multipleOf")  # without one, a number has no levels
    known = {"boolean", "null", "integer", *(["number"] if is_grid else [])}
    if not types or not set(types) <= known or len(set(types)) < len(types):
        reader.complain(site.path, "unsupported_question", _unsupported(types))
        return ()
    numbers = {"integer", "number"} & set(types)
    reader.refuse(site, frozenset({"type"}) | (LEVEL_KEYWORDS if numbers else frozenset()))
    found: list[Option] = []
    for name in types:
        match name:
            case "boolean":
                found.extend((YES, NO))
            case "integer" | "number":
                found.extend(map(make_option, levels_of(site, reader, is_integer=name == "integer")))
            case _:
                title, description = reader.text(site, "title"), reader.text(site, "description")
                # A whole question may be null or something else; then the texts are the question's, not the option's.
                found.append(make_option(None, title, description) if types == ("null",) else make_option(None))
    return described(found, site, reader)


def described(options: Sequence[Option], site: Site, reader: Reader) -> list[Option]:
    """The options with the descriptions that stand beside them, by key."""
    texts = site.schema.get(OPTION_DESCRIPTIONS, {})
    place = site.at(OPTION_DESCRIPTIONS)
    if not options:  # which was complained about
        return []
    if not isinstance(texts, dict):
        reader.complain(place, "bad_descriptions", "must be an object of strings, by option")
        return list(options)
    if not texts.keys() <= {option.key for option in options}:
        reader.complain(place, "bad_descriptions", "describes an option that is not there")
        return list(options)
    for key, text in texts.items():
        if not isinstance(text, str):
            reader.complain((*place, key), "bad_descriptions", "must be a string")
            return list(options)
        if len(text) > reader.limits.max_text_chars:
            most = reader.limits.max_text_chars
            reader.complain((*place, key), "text_too_long", f"may have {most} characters")
            return list(options)
        reader.count_chars(place, text)
    return [explain(option, texts.get(option.key, "")) for option in options]


def check_options(options: Sequence[Option], site: Site, reader: Reader, least: int, most: int) -> None:
    """Complain about options that are too few, too many, too long or not to be told apart."""
    most = min(most, reader.limits.max_options)
    if not least <= len(options) <= most:
        reader.complain(site.path, "bad_options", _miscounted(len(options), least, most, reader))
    if twins := _twins(options):
        message = "options {} and {}, counted from 1, are the same value or read the same".format(*twins)
        reader.complain(site.path, "duplicate_option", message)
    if any(len(option.text) > reader.limits.max_text_chars for option in options):
        most = reader.limits.max_text_chars
        reader.complain(site.path, "text_too_long", f"an option's text may have {most} characters")


def _miscounted(count: int, least: int, most: int, reader: Reader) -> str:
    message = f"has {count} options, and may have {least} to {most}"
    if most == reader.limits.max_labels < count <= reader.limits.max_options:
        return message + ": the model's tokenizer has no more labels; an array may have more options"
    return message


def _twins(options: Sequence[Option]) -> tuple[int, int] | None:
    """The first two options that a caller or the model could not tell apart, counted from 1."""
    for told_apart_by in (lambda option: identity(option.value), lambda option: option.key, lambda option: option.text):
        seen: dict[object, int] = {}
        for number, option in enumerate(options, start=1):
            if (first := seen.setdefault(told_apart_by(option), number)) != number:
                return first, number
    return None


def _unsupported(types: Sequence[str]) -> str:
    """What to do about a schema that lists no options."""
    if "string" in types:
        return 'free text cannot be asked: list the values with "enum"'
    if "object" in types or "array" in types:
        return "objects and arrays cannot be options: neither an array of them nor a choice between them can be asked"
    if "number" in types:
        return 'a number needs "minimum" 0 and "maximum" 1 (a probability), or bounds and "multipleOf" (a grid)'
    if types:
        return "is no type that can be asked: boolean, integer, number, array, object"
    return 'must say what it may be: "enum", "const", "oneOf" or "anyOf" of these, or a "type"'


def _check_types(options: Sequence[Option], site: Site, reader: Reader) -> None:
    if not site.has("type"):
        return
    names = declared_types(site)
    if not names or not set(names) <= JSON_TYPES.keys():
        message = "must be string, number, integer, boolean or null, or an array of these"
        reader.complain(site.at("type"), "bad_type", message)
    elif not all(any(_is_type(option.value, name) for name in names) for option in options):
        message = 'an option is not of the declared "type"; for null, say ["string", "null"] for example'
        reader.complain(site.path, "option_of_other_type", message)


def _is_type(value: JsonScalar, name: str) -> bool:
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, JSON_TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
