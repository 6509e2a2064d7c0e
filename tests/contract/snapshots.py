"""What others build upon, in files: `python -m tests.contract.snapshots` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.main import create_app, make_engine
from app.metrics import Metrics
from app.settings import Settings

FOLDER = Path(__file__).parent / "snapshots"
OPENAPI, METRICS = FOLDER / "openapi.json", FOLDER / "metrics.txt"


def api() -> str:
    """The OpenAPI document."""
    settings = Settings(engine="fake")
    return json.dumps(create_app(settings, make_engine(settings)).openapi(), indent=1) + "\n"


def metrics() -> str:
    """Every metric of ours: its kind, its name and its labels."""
    collectors: Any = Metrics().registry._collector_to_names  # labels are on no public interface of theirs
    described = (
        f"{family.type} {family.name}{{{','.join(collector._labelnames)}}}"
        for collector in collectors
        for family in collector.describe()
    )
    return "".join(f"{line}\n" for line in sorted(described))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    OPENAPI.write_text(api())
    METRICS.write_text(metrics())
