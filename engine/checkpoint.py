"""A checkpoint: where it lies, how large it is, and which one it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import snapshot_download

from engine.protocol import EngineStartFailed

# Up to here every byte is hashed; beyond, evenly spaced samples: a 48 GiB checkpoint costs a second, not minutes.
FULL_DIGEST_BYTES = 1 << 30
SAMPLE_BYTES = 1 << 16
SAMPLES_PER_FILE = 256

FILES = ["*.json", "*.safetensors", "*.jinja", "*.model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was found.

    Attributes:
        revision: the commit, where it came from a repository; else what the operator calls it, or nothing.
    """

    folder: Path
    revision: str


def locate_checkpoint(model: str, revision: str | None) -> Checkpoint:
    """`model` itself if it is a folder, else the local copy of that Hugging Face repository.

    Raises:
        EngineStartFailed: neither a folder nor a repository that can be had.
    """
    folder = Path(model)
    if folder.is_dir():
        return Checkpoint(folder=folder, revision=revision or "")
    try:
        snapshot = Path(snapshot_download(model, revision=revision, allow_patterns=FILES))
    except Exception as error:
        raise EngineStartFailed(
            f"DECIDE_MODEL is neither a folder nor a repository that can be downloaded ({type(error).__name__}); "
            "give the path of a checkpoint folder, or download the repository first"
        ) from error
    return Checkpoint(folder=snapshot, revision=snapshot.name)  # the hub names a snapshot after its commit


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint, by name.

    Raises:
        EngineStartFailed: there are none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EngineStartFailed("the checkpoint folder holds no .safetensors file")
    return files


def weight_bytes(folder: Path) -> int:
    """Size of the weights on disk, in bytes."""
    return sum(file.stat().st_size for file in weight_files(folder))


def checkpoint_digest(folder: Path) -> str:
    """SHA-256, as hex, over everything in a checkpoint that decides an answer: weights, configuration, tokenizer and
    chat template, by name, size and content.

    Weights above `FULL_DIGEST_BYTES` are sampled: the head of each file (safetensors keeps names and shapes there) and
    `SAMPLES_PER_FILE` evenly spaced blocks of `SAMPLE_BYTES`.
    """
    digest = hashlib.sha256()
    is_small = weight_bytes(folder) <= FULL_DIGEST_BYTES
    for file in sorted(file for pattern in FILES for file in folder.glob(pattern)):
        digest.update(f"{file.name}:{file.stat().st_size}\n".encode())
        for block in _blocks(file, whole=is_small or file.suffix != ".safetensors"):
            digest.update(block)
    return digest.hexdigest()


def _blocks(file: Path, *, whole: bool) -> Iterator[bytes]:
    size = file.stat().st_size
    stride = SAMPLE_BYTES if whole else max(SAMPLE_BYTES, size // SAMPLES_PER_FILE)
    with file.open("rb") as stream:
        for offset in range(0, size, stride):
            stream.seek(offset)
            yield stream.read(SAMPLE_BYTES)
