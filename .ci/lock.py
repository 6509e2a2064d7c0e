"""Write requirements.lock and requirements-dev.lock from pyproject.toml; run it through `make lock`.

pip resolves the requirements once for every supported Python, installing nothing, and reports which archives
it would have installed. The locks hold the names, versions and hashes of those, and not where they came from.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"

SUPPORTED_PYTHONS = ("3.11", "3.12")

RUNTIME_HEADER = """\
# Everything the service needs at run time, on Linux x86-64 (glibc 2.34 or newer) with Python 3.11 or 3.12.
# Made by `make lock` from pyproject.toml; do not edit. It is complete, so install it without dependencies:
# `pip install --no-deps --require-hashes -r requirements.lock`. What vLLM asks for beyond it (torchvision,
# torchaudio, torchcodec, triton) is left out on purpose; .ci/lock.py says why. torch's CPU build is not on
# PyPI but on PyTorch's CPU wheel index.
"""

DEV_HEADER = """\
# What tests and checks need beyond requirements.lock. Made by `make lock` from pyproject.toml; do not edit.
# Install it with `pip install --no-deps --require-hashes -r requirements-dev.lock`.
"""


class LockFailed(Exception):
    """The locks cannot be written; the message says what to do."""


@dataclass(frozen=True, order=True, slots=True)
class Pin:
    """One release of one distribution."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


# vLLM asks for these four. A text-only service on a CPU needs none of them, and PyPI's builds of the first
# three are for CUDA: beside a CPU build of torch, `import vllm` dies. While pip resolves, an empty stand-in
# with this version takes the place of each, so that what only they would pull in stays out of the locks too.
# Goes when vLLM's CPU distribution no longer asks for them.
EXCLUDED = (
    Pin("torchvision", "0.28.0+absent"),
    Pin("torchaudio", "2.11.1+absent"),
    Pin("torchcodec", "0.17.0+absent"),
    Pin("triton", "3.9.0+absent"),
)


@dataclass(frozen=True, slots=True)
class Archive:
    """What pip would install of a release on one Python; a stand-in has no hash."""

    pin: Pin
    sha256: str | None
    requires: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write requirements.lock and requirements-dev.lock.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions, not the locked ones")
    parser.add_argument("pythons", nargs="+", help="an interpreter with pip for each supported Python")
    arguments = parser.parse_args()
    try:
        write_locks(interpreters_by_version(arguments.pythons), upgrade=arguments.upgrade)
    except LockFailed as failure:
        sys.exit(f"make lock: {failure}")


def write_locks(interpreters: Mapping[str, str], *, upgrade: bool) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The project is installed without build isolation, so its build tool is part of the lock.
    runtime_requirements = [*settings["project"]["dependencies"], *settings["build-system"]["requires"]]
    dev_requirements = settings["project"]["optional-dependencies"]["dev"]
    present = "".join(lock.read_text() for lock in (RUNTIME_LOCK, DEV_LOCK) if lock.exists())
    known_hashes = read_hashes(present)
    kept = [] if upgrade else read_pins(present)

    runtime: dict[str, list[Archive]] = {}
    dev: dict[str, list[Archive]] = {}
    with TemporaryDirectory(prefix="onestep-lock-") as folder:
        stand_ins = Path(folder)
        for pin in EXCLUDED:
            write_stand_in(stand_ins, pin)
        for version, interpreter in interpreters.items():
            print(f"Resolving for Python {version}; this takes some minutes ...", flush=True)
            runtime[version] = resolve(interpreter, runtime_requirements, kept, stand_ins)
            chosen = [archive.pin for archive in runtime[version]]
            both = resolve(interpreter, dev_requirements, [*map(str, chosen), *kept], stand_ins)
            dev[version] = [archive for archive in both if archive.pin not in chosen]
            offer_torch(stand_ins, runtime[version])

    RUNTIME_LOCK.write_text(RUNTIME_HEADER + render_lock(runtime, known_hashes))
    DEV_LOCK.write_text(DEV_HEADER + render_lock(dev, known_hashes))


def offer_torch(stand_ins: Path, archives: Iterable[Archive]) -> None:
    """A stand-in for the torch just resolved: the index used here may lack its wheel for the next Python."""
    for archive in archives:
        if archive.pin.name == "torch":
            write_stand_in(stand_ins, archive.pin, archive.requires)


def interpreters_by_version(interpreters: Sequence[str]) -> dict[str, str]:
    found = {python_version(interpreter): interpreter for interpreter in interpreters}
    missing = [version for version in SUPPORTED_PYTHONS if version not in found]
    if missing:
        raise LockFailed(
            f"Python {' and '.join(missing)} not found; name one interpreter for each supported version, "
            'as in make lock LOCK_PYTHONS="python3.11 /path/to/python3.12"'
        )
    return {version: found[version] for version in SUPPORTED_PYTHONS}


def python_version(interpreter: str) -> str | None:
    command = [interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def resolve(
    interpreter: str, requirements: Iterable[str], constraints: Iterable[str], stand_ins: Path
) -> list[Archive]:
    """The archives pip would install into an empty environment, without the excluded distributions."""
    constraint_file = stand_ins / "constraints.txt"
    constraint_file.write_text("\n".join([*map(str, EXCLUDED), *constraints]))
    report = stand_ins / "report.json"
    command = [interpreter, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--quiet"]
    command += [
        "--only-binary",
        ":all:",
        "--find-links",
        str(stand_ins),
        "--constraint",
        str(constraint_file),
    ]
    command += ["--report", str(report), *requirements]
    if subprocess.run(command, check=False).returncode != 0:
        raise LockFailed(
            "pip could not resolve the requirements; its messages are above. If a bound in pyproject.toml "
            "excludes a locked version, run make lock UPGRADE=1. If torch is missing: its CPU build is on "
            "PyTorch's CPU wheel index, so set PIP_EXTRA_INDEX_URL to that"
        )
    archives = [read_archive(entry, stand_ins) for entry in json.loads(report.read_text())["install"]]
    wanted = [archive for archive in archives if archive.pin not in EXCLUDED]
    for pin in [archive.pin for archive in wanted if archive.sha256 is None]:
        print(f"No wheel of {pin.name} {pin.version} found for this Python: the lock gains no hash of it.")
    return wanted


def read_archive(entry: Mapping[str, Any], stand_ins: Path) -> Archive:
    """One entry of pip's installation report."""
    metadata, download = entry["metadata"], entry["download_info"]
    is_stand_in = download["url"].startswith(stand_ins.as_uri())
    return Archive(
        pin=Pin(re.sub(r"[-_.]+", "-", metadata["name"]).lower(), metadata["version"]),
        sha256=None if is_stand_in else read_sha256(download["archive_info"]),
        requires=tuple(metadata.get("requires_dist", ())),
    )


def read_sha256(archive_info: Mapping[str, Any]) -> str:
    # Before 23.1 pip leaves "hashes" out for a file on this machine's disk, and has only the older "hash".
    hashes = archive_info.get("hashes") or dict([archive_info["hash"].split("=")])
    return str(hashes["sha256"])


def write_stand_in(folder: Path, pin: Pin, requires: Iterable[str] = ()) -> None:
    """An empty wheel for every platform; where a real wheel of the same version fits, pip prefers that."""
    stem = f"{pin.name}-{pin.version}"
    metadata = ["Metadata-Version: 2.1", f"Name: {pin.name}", f"Version: {pin.version}"]
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{stem}.dist-info/METADATA", "\n".join(metadata))
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")


def read_pins(lock: str) -> list[str]:
    """The requirements of a lock, with their markers and without their hashes."""
    return re.findall(r"^[\w.-]+==[^\\\n]+", lock, re.MULTILINE)


def read_hashes(lock: str) -> dict[Pin, set[str]]:
    entries = re.finditer(r"^([\w.-]+)==([^\s;]+).*((?:\n .*)*)", lock, re.MULTILINE)
    return {Pin(entry[1], entry[2]): set(re.findall(r"sha256:(\w+)", entry[3])) for entry in entries}


def render_lock(resolved: Mapping[str, Sequence[Archive]], known_hashes: Mapping[Pin, set[str]]) -> str:
    """One entry for each release, with a marker when only some Pythons need it.

    A release keeps the hashes it has in the present lock: the index used here may lack one Python's wheel.
    """
    pythons: dict[Pin, list[str]] = {}
    hashes: dict[Pin, set[str]] = {}
    for version, archives in resolved.items():
        for archive in archives:
            pythons.setdefault(archive.pin, []).append(version)
            found = hashes.setdefault(archive.pin, set(known_hashes.get(archive.pin, ())))
            if archive.sha256 is not None:
                found.add(archive.sha256)
    return "".join(render_entry(pin, pythons[pin], hashes[pin]) for pin in sorted(pythons))


def render_entry(pin: Pin, pythons: Sequence[str], hashes: Iterable[str]) -> str:
    marker = " or ".join(f'python_version == "{version}"' for version in pythons)
    needed_everywhere = len(pythons) == len(SUPPORTED_PYTHONS)
    head = str(pin) if needed_everywhere else f"{pin} ; {marker}"
    return " \\\n".join([head, *(f"    --hash=sha256:{digest}" for digest in sorted(hashes))]) + "\n"


if __name__ == "__main__":
    main()
