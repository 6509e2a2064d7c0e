"""Options and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from app.canvas.json import JsonScalar
from app.canvas.option import NO, YES, Option, explain, find_option, is_scalar, make_option
from tests.app.canvas import rubrics


@dataclass(frozen=True)
class Case:
    id: str
    option: Option
    key: str
    text: str


CASES = (
    Case("a string", make_option("billing"), "billing", "billing"),
    Case("with a title", make_option("b", title="Billing"), "b", "Billing"),
    Case("with a description", make_option("b", description="money"), "b", "b: money"),
    Case("with both", make_option("b", title="Billing", description="money"), "b", "Billing: money"),
    Case("explained", explain(make_option("b", title="Billing"), "money\nand more"), "b", "Billing: money and more"),
    Case("not explained", explain(make_option("b"), " \n"), "b", "b"),
    Case("the empty string", make_option(""), "", '""'),
    Case("white space", make_option(" \n"), " \n", '""'),
    Case("a title of white space", make_option("b", title=" "), "b", "b"),
    Case("a string of lines", make_option("a\n- B = b"), "a\n- B = b", "a - B = b"),
    Case("null", make_option(None), "null", "none of these"),
    Case("null with a title", make_option(None, title="Neither"), "null", "Neither"),
    Case("an integer", make_option(-3), "-3", "-3"),
    Case("a float", make_option(2.5), "2.5", "2.5"),
    Case("a whole float", make_option(1.0), "1.0", "1.0"),
    Case("one is not true", make_option(1), "1", "1"),
    Case("zero is not false", make_option(0), "0", "0"),
    Case("true", YES, "true", "yes"),
    Case("false", NO, "false", "no"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_option_is_shown_on_one_line(case: Case) -> None:
    """The key is the value's text; what is shown is its title or the value, then the description, on one line."""
    assert (case.option.key, case.option.text) == (case.key, case.text)


@given(rubrics.scalars(), rubrics.texts(), rubrics.texts())
def test_an_option_keeps_its_value(value: JsonScalar, title: str, description: str) -> None:
    """Whatever is shown, which is never nothing and never more than a line."""
    option = make_option(value, title, description)
    assert option.value is value
    assert option.text.strip() == option.text != ""
    assert option.text.splitlines() == [option.text]
    assert explain(make_option(value, title), description) == option


def test_only_scalars_are_options() -> None:
    """A string, a number, a boolean or null; nothing that nests, or that cannot be written."""
    scalars: list[Any] = ["", 0, 0.5, True, None, 10**100, -(10**100), 1e308]
    others: list[Any] = [[], {}, ["a"], 10**100 + 1, -(10**5000), float("nan"), float("inf")]
    assert all(is_scalar(value) for value in scalars)
    assert not any(is_scalar(value) for value in others)


@given(rubrics.option_values(), rubrics.scalars())
def test_an_option_is_found_by_its_value(values: list[JsonScalar], other: JsonScalar) -> None:
    """Equal as JSON Schema has it: 1 is 1.0, and true is neither."""
    options = [make_option(value) for value in values]
    for option in options:
        assert find_option(options, option.value) is option
    found = find_option(options, other)
    assert (found is not None) == any(other == v and isinstance(other, bool) == isinstance(v, bool) for v in values)
    assert find_option(options, [values[0]]) is None
