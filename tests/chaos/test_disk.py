"""The disk is full: where temporary files go, and where the log goes."""

from __future__ import annotations

import errno
import signal
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.cases import HEADACHE
from tests.server import ServerProcess

pytestmark = pytest.mark.engine

# Of a folder for temporary files that is a small disk of its own.
DISK_BYTES = 1 << 20


class SmallDiskServerProcess(ServerProcess):
    """The service with a small disk for temporary files, which nobody else sees (mount_namespaces(7))."""

    def __init__(self, log: Path, folder: Path, *, is_full: bool, **environment: str) -> None:
        super().__init__(log, TMPDIR=str(folder), **environment)
        folder.mkdir()
        mount = f'mount -t tmpfs -o size={DISK_BYTES} tmpfs "{folder}"'
        fill = f'; head -c {2 * DISK_BYTES} /dev/zero >"{folder}/full" 2>/dev/null' if is_full else ""
        self.launcher = ("unshare", "--map-root-user", "--mount", "sh", "-c", f'{mount}{fill}; exec "$@"', "sh")
        self._folder = folder

    def fill(self) -> None:
        """Write to the disk until no byte more fits."""
        folder = Path(f"/proc/{self.running.pid}/root") / self._folder.relative_to("/")
        with (folder / "full").open("wb", 0) as file:
            written = 1
            while written:
                written = _write_or_nothing(file)


def _write_or_nothing(file: BinaryIO) -> int:
    try:
        return file.write(bytes(4096))
    except OSError as refusal:
        if refusal.errno != errno.ENOSPC:
            raise
        return 0


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """A service that is ready needs no disk: it answers on, and stops in order."""
    with SmallDiskServerProcess(tmp_path / "log", tmp_path / "disk", is_full=False, DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        assert server.decide(HEADACHE).status_code == 200
        server.fill()
        assert server.decide(HEADACHE).status_code == 200
        assert server.decide({**HEADACHE, "state": "Another one. " * 100}).status_code == 200
        assert server.health_status() == 200
        assert server.stop(signal.SIGTERM) == 0
        assert server.survivors() == []


def test_a_disk_that_is_full_at_the_start(tmp_path: Path) -> None:
    """It starts all the same, and serves whoever cannot read its log: nothing depends on what is written."""
    with SmallDiskServerProcess(Path("/dev/full"), tmp_path / "disk", is_full=True, DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        assert server.decide(HEADACHE).status_code == 200
        assert server.decide([]).status_code == 422
        assert server.stop(signal.SIGTERM) == 0
