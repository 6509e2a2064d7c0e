"""The text-only model: a checkpoint with its vision tower is served as if it had none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases import REQUESTS
from tests.checkpoints import write_random_checkpoint
from tests.server import ServerProcess

pytestmark = pytest.mark.engine

TOWER_BYTES = 200 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server of one checkpoint answered, and the memory of its worker when it was ready."""

    answers: list[dict[str, Any]]
    worker_bytes: int


def serve(folder: Path, log: Path) -> Served:
    """Start a server of a checkpoint and ask it everything."""
    with ServerProcess(log, DECIDE_MODEL=str(folder), DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        workers = [p for p in server.engine_processes() if "Worker" in " ".join(p.cmdline())]
        (worker,) = workers
        memory = worker.memory_info().rss
        answers = [server.decide(request).raise_for_status().json()["answers"] for request in REQUESTS[:8]]
    return Served(answers=answers, worker_bytes=memory)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> tuple[Path, Path]:
    """Two checkpoints with the same text weights: one with a vision tower of over 200 MB, one without."""
    root = tmp_path_factory.mktemp("checkpoints")
    full, text_only = root / "full", root / "text-only"
    write_random_checkpoint(
        full, tokenizer_folder=checkpoint, with_vision=True, vision_hidden_size=768, vision_layers=12
    )
    write_random_checkpoint(text_only, tokenizer_folder=checkpoint, with_vision=False)
    return full, text_only


def size(folder: Path) -> int:
    """Bytes of the weights of a checkpoint."""
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def test_full_layout(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """A full checkpoint as Hugging Face saves it reads the same as its text part, in the memory of its text part."""
    full, text_only = folders
    assert size(full) > size(text_only) + TOWER_BYTES
    with_tower, without = serve(full, tmp_path / "full.log"), serve(text_only, tmp_path / "text.log")
    for one, other in zip(with_tower.answers, without.answers, strict=True):
        assert one.keys() == other.keys()
        for key, answer in one.items():
            assert answer["probabilities"] == pytest.approx(other[key]["probabilities"], abs=1e-6)
    assert with_tower.worker_bytes < without.worker_bytes + TOWER_BYTES // 4
