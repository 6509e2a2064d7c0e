"""Every setting is documented."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from app.settings import PREFIX, Settings

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("variable", [PREFIX + field.name.upper() for field in fields(Settings)])
def test_a_setting_is_in_the_readme(variable: str) -> None:
    """C2: an operator finds every variable there is."""
    assert re.search(rf"\b{variable}\b", README.read_text())


def test_the_readme_names_no_other() -> None:
    """C2: and none that would be refused."""
    named = set(re.findall(r"\bDECIDE_[A-Z_]*[A-Z]\b", README.read_text()))
    assert named <= {PREFIX + field.name.upper() for field in fields(Settings)}


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_a_default_in_the_readme_is_the_default(field: Field[Any]) -> None:
    """C2: where the table gives one as code; a default that is chosen at start is described in words."""
    (shown,) = re.findall(rf"^\| `{PREFIX}{field.name.upper()}` \| (.*?) ?\| ", README.read_text(), re.MULTILINE)
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    assert shown == f"`{default}`" if shown.startswith("`") else not field.default
