"""Levels: the numbers that bounds and a step admit."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from math import isfinite

from app.canvas.json import Json
from app.canvas.site import Reader, Site

MIN_LEVELS, MAX_LEVELS = 2, 10
LEVEL_KEYWORDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

Number = int | float

# Wide enough that the arithmetic below is exact for every number within: no sum or quotient of two needs more digits.
_LARGEST = 10**100
_CONTEXT = Context(prec=1200)


def levels_of(site: Site, reader: Reader, *, is_integer: bool) -> tuple[Number, ...]:
    """The levels in order; nothing, with a complaint, unless there are 2 to 10.

    In decimals, so that a grid of 0.1 holds 0.3 and not the nearest sum of floats.
    """
    with localcontext(_CONTEXT):
        step = _step(site, reader, is_integer=is_integer)
        low = _bound(site, reader, "minimum", "exclusiveMinimum")
        high = _bound(site, reader, "maximum", "exclusiveMaximum")
        if step is None or low is None or high is None:
            return ()
        levels = _grid(site, low, high, step)
        if not MIN_LEVELS <= len(levels) <= MAX_LEVELS:
            message = f'the bounds must admit {MIN_LEVELS} to {MAX_LEVELS} levels; a larger "multipleOf" makes fewer'
            reader.complain(site.path, "bad_levels", message)
            return ()
        return tuple(int(level) if level % 1 == 0 else float(level) for level in levels)


def _grid(site: Site, low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    first = (low / step).to_integral_value(ROUND_CEILING)
    last = (high / step).to_integral_value(ROUND_FLOOR)
    # Two more than are allowed, for exclusive bounds may take one off at each end.
    count = int(min(max(last - first + 1, Decimal(0)), Decimal(MAX_LEVELS + 3)))
    excluded = {_decimal(site.schema.get(keyword)) for keyword in ("exclusiveMinimum", "exclusiveMaximum")}
    levels = ((first + i) * step for i in range(count))
    return [level for level in levels if level not in excluded]


def _step(site: Site, reader: Reader, *, is_integer: bool) -> Decimal | None:
    if not site.has("multipleOf"):
        return Decimal(1)
    step = _number(site, reader, "multipleOf")
    if step is not None and (step <= 0 or (is_integer and step % 1)):
        reader.complain(site.at("multipleOf"), "bad_step", "must be greater than 0, and whole among integers")
        return None
    return step


def _bound(site: Site, reader: Reader, inclusive: str, exclusive: str) -> Decimal | None:
    given = [keyword for keyword in (inclusive, exclusive) if site.has(keyword)]
    if len(given) != 1:
        place = site.at(given[0]) if given else site.path
        reader.complain(place, "bad_bound", f'exactly one of "{inclusive}" and "{exclusive}" must be given')
        return None
    return _number(site, reader, given[0])


def _number(site: Site, reader: Reader, keyword: str) -> Decimal | None:
    number = _decimal(site.schema[keyword])
    if number is None:
        reader.complain(site.at(keyword), "bad_number", "must be a number, and not a huge one")
    return number


def _decimal(value: Json) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if (isinstance(value, float) and not isfinite(value)) or abs(value) > _LARGEST:
        return None
    return Decimal(str(value))
