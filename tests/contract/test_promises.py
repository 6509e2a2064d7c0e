"""The table of promises: whole, true to the code, and what the page shows. `python -m tests.promises` breaks them."""

from __future__ import annotations

import ast
import re

import pytest

from tests.promises import PROMISES, ROOT, Promise, table

IDS = [*(f"R{n}" for n in range(1, 20)), *(f"S{n}" for n in range(1, 13)), *(f"P{n}" for n in range(1, 5)), "C1", "C2"]


def test_every_promise_is_there() -> None:
    """Once, in order."""
    assert [promise.id for promise in PROMISES] == IDS


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.id)
def test_a_promise_names_its_test_and_what_breaks_it(promise: Promise) -> None:
    """The test exists and names the promise; what is to be changed stands in the code once."""
    path, name = promise.test.partition("[")[0].split("::")
    functions = {
        node.name: ast.get_docstring(node) or ""
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert re.search(rf"\b{promise.id}\b", functions[name])
    assert (ROOT / promise.file).read_text().count(promise.old) == 1
    assert promise.new != promise.old


def test_the_page_shows_the_table() -> None:
    """docs/behaviour.md; `python -m tests.promises --table` prints it."""
    assert table() in (ROOT / "docs" / "behaviour.md").read_text()
