"""The service as a process, over a fake engine whose reads take `SLOW_READ_SECONDS`: `python -m tests.slow_service`."""

from __future__ import annotations

import os
import sys

from app import server
from app.settings import Settings
from app.startup import EngineFactory
from engine.fake import FakeEngine
from engine.protocol import ReadRequest, ReadResult


class SlowEngine(FakeEngine):
    """Reads take their time from the second one on: the first is the service's own."""

    async def read(self, request: ReadRequest) -> ReadResult:
        result = await super().read(request)
        self.read_seconds = float(os.environ["SLOW_READ_SECONDS"])
        return result


def make_slow_engine(_: Settings) -> EngineFactory:
    """Whatever the settings name."""
    return lambda engine_settings: SlowEngine(settings=engine_settings)


if __name__ == "__main__":
    vars(server)["make_engine"] = make_slow_engine
    sys.exit(server.main())
