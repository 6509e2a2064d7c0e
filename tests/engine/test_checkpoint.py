"""Where a checkpoint lies and which one it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import checkpoint
from engine.checkpoint import Checkpoint, checkpoint_digest, locate_checkpoint, weight_bytes, weight_files
from engine.protocol import EngineStartFailed

FILE_BYTES = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of two files."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("b.safetensors", "a.safetensors"):
        (folder / name).write_bytes(name[:1].encode() * FILE_BYTES)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("[]")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "README.md").write_text("no weights")
    return folder


def flip(file: Path, offset: int) -> None:
    """Change one byte."""
    content = bytearray(file.read_bytes())
    content[offset] ^= 1
    file.write_bytes(content)


def sample(monkeypatch: pytest.MonkeyPatch, *, above_bytes: int) -> None:
    """Sample checkpoints that are larger than this: 16 bytes of every 250 in a file of 1000."""
    monkeypatch.setattr(checkpoint, "FULL_DIGEST_BYTES", above_bytes)
    monkeypatch.setattr(checkpoint, "SAMPLE_BYTES", 16)
    monkeypatch.setattr(checkpoint, "SAMPLES_PER_FILE", 4)


def test_weights_are_the_safetensors_files(folder: Path) -> None:
    """In one order everywhere, and nothing else counts."""
    assert [file.name for file in weight_files(folder)] == ["a.safetensors", "b.safetensors"]
    assert weight_bytes(folder) == 2 * FILE_BYTES


@pytest.mark.parametrize("name", ["a.safetensors", "b.safetensors"])
@pytest.mark.parametrize("offset", [0, FILE_BYTES // 2, FILE_BYTES - 1])
def test_every_byte_counts(folder: Path, name: str, offset: int) -> None:
    """One flipped byte anywhere is another checkpoint; flipped back it is the same again."""
    before = checkpoint_digest(folder)
    flip(folder / name, offset)
    assert checkpoint_digest(folder) != before
    flip(folder / name, offset)
    assert checkpoint_digest(folder) == before


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A change beside the bytes of the weights, and whether it makes another checkpoint."""

    id: str
    change: Callable[[Path], object]
    counts: bool


CASES = [
    Case(id="configuration", change=lambda folder: (folder / "config.json").write_text("{ }"), counts=True),
    Case(id="tokenizer", change=lambda folder: (folder / "tokenizer.json").write_text("{}"), counts=True),
    Case(
        id="template", change=lambda folder: (folder / "chat_template.jinja").write_text("{{ message }}"), counts=True
    ),
    Case(id="name", change=lambda folder: (folder / "b.safetensors").rename(folder / "c.safetensors"), counts=True),
    Case(id="further file", change=lambda folder: (folder / "c.safetensors").touch(), counts=True),
    Case(id="other file", change=lambda folder: (folder / "README.md").write_text("!"), counts=False),
    Case(id="place", change=lambda folder: folder.rename(folder.parent / "checkpoint2"), counts=False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_else_counts(folder: Path, case: Case) -> None:
    """Configuration, tokenizer, chat template, names and sizes; not where the folder lies or what else is in it."""
    before = checkpoint_digest(folder)
    case.change(folder)
    moved = next(folder.parent.iterdir())
    assert (checkpoint_digest(moved) != before) == case.counts


def test_bytes_count_where_they_are(folder: Path) -> None:
    """The same bytes cut into files at another place are another checkpoint."""
    before = checkpoint_digest(folder)
    for name, size in (("a.safetensors", FILE_BYTES - 1), ("b.safetensors", FILE_BYTES + 1)):
        whole = b"a" * FILE_BYTES + b"b" * FILE_BYTES
        start = 0 if name.startswith("a") else FILE_BYTES - 1
        (folder / name).write_bytes(whole[start : start + size])
    assert checkpoint_digest(folder) != before


@pytest.mark.parametrize(
    ("offset", "counts"), [(0, True), (15, True), (16, False), (250, True), (265, True), (766, False)]
)
def test_a_large_checkpoint_is_sampled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, offset: int, counts: bool
) -> None:
    """Above the limit the head of each file counts and blocks at even distances, but not what lies between."""
    sample(monkeypatch, above_bytes=2 * FILE_BYTES - 1)
    before = checkpoint_digest(folder)
    flip(folder / "b.safetensors", offset)
    assert (checkpoint_digest(folder) != before) == counts


def test_a_checkpoint_at_the_limit_is_hashed_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, none left out."""
    sample(monkeypatch, above_bytes=2 * FILE_BYTES)
    before = checkpoint_digest(folder)
    flip(folder / "b.safetensors", 16)
    assert checkpoint_digest(folder) != before


def test_only_weights_are_sampled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large checkpoint too, every byte of the tokenizer counts."""
    sample(monkeypatch, above_bytes=0)
    (folder / "tokenizer.json").write_bytes(b"a" * FILE_BYTES)
    before = checkpoint_digest(folder)
    flip(folder / "tokenizer.json", 16)
    assert checkpoint_digest(folder) != before


@pytest.mark.parametrize(("revision", "expected"), [("r1", "r1"), (None, "")])
def test_a_folder_is_taken_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, revision: str | None, expected: str
) -> None:
    """Nothing is downloaded; the revision is what the operator says."""
    monkeypatch.delattr(checkpoint, "snapshot_download")
    assert locate_checkpoint(str(folder), revision) == Checkpoint(folder=folder, revision=expected)


def test_a_repository_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that a text model needs, at the revision that was asked for; it is known by the commit it has."""

    def download(model: str, *, revision: str, allow_patterns: list[str]) -> str:
        assert (model, revision) == ("google/some-model", "main")
        assert {"*.safetensors", "*.json", "*.jinja"} <= set(allow_patterns)
        return "/cache/snapshots/0123abc"

    monkeypatch.setattr(checkpoint, "snapshot_download", download)
    found = locate_checkpoint("google/some-model", "main")
    assert found == Checkpoint(folder=Path("/cache/snapshots/0123abc"), revision="0123abc")


def test_a_failed_download_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the setting and the kind of failure, and no path of this machine."""

    def download(*_: object, **__: object) -> str:
        raise OSError("/root/.cache/huggingface is read-only")

    monkeypatch.setattr(checkpoint, "snapshot_download", download)
    with pytest.raises(EngineStartFailed, match=r"DECIDE_MODEL .*\(OSError\); give the path") as failed:
        locate_checkpoint("google/some-model", None)
    assert "/root" not in str(failed.value)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    """The message says what is missing, and no path of this machine."""
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(EngineStartFailed, match=r"no \.safetensors file") as failed:
        weight_files(tmp_path)
    assert str(tmp_path) not in str(failed.value)
