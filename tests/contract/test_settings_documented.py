"""Every setting is documented."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

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
