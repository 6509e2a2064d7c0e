"""Where a checkpoint lies, how large it is, and which one it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import snapshot_download

from engine.protocol import EngineStartFailed

# Up to here every byte is hashed; beyond, evenly spaced samples: a 48 GiB checkpoint costs a second, not minutes.
FULL_DIGEST_BYTES = 1 << 30
SAMPLE_BYTES = 1 << 16
SAMPLES_PER_FILE = 256

FILES = ["*.json", "*.safetensors", "*.jinja", "*.model"]


def locate_checkpoint(model: str, revision: str | None) -> Path:
    """The folder of a checkpoint: `model` itself if it is one, else the local copy of that Hugging Face repository.

    Raises:
        EngineStartFailed: neither a folder nor a repository that can be had.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=FILES))
    except Exception as error:
        raise EngineStartFailed(
            f"DECIDE_MODEL is neither a folder nor a repository that can be downloaded ({type(error).__name__}); "
            "give the path of a checkpoint folder, or download the repository first"
        ) from error


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


def weights_digest(folder: Path) -> str:
    """SHA-256 over names, sizes and contents of the weights and over config.json, as hex.

    Checkpoints above `FULL_DIGEST_BYTES` are sampled: the head of each file (safetensors keeps names and shapes there)
    and `SAMPLES_PER_FILE` evenly spaced blocks of `SAMPLE_BYTES`.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    whole = weight_bytes(folder) <= FULL_DIGEST_BYTES
    for file in weight_files(folder):
        digest.update(f"{file.name}:{file.stat().st_size}\n".encode())
        for block in _blocks(file, whole):
            digest.update(block)
    return digest.hexdigest()


def _blocks(file: Path, whole: bool) -> Iterator[bytes]:
    size = file.stat().st_size
    stride = SAMPLE_BYTES if whole else max(SAMPLE_BYTES, size // SAMPLES_PER_FILE)
    with file.open("rb") as stream:
        for offset in range(0, size, stride):
            stream.seek(offset)
            yield stream.read(SAMPLE_BYTES)
