"""A set of reads to measure with."""

from __future__ import annotations

from typing import Protocol

from engine.protocol import ReadRequest


class ReadSet(Protocol):
    """Reads by number. A read has as many variations as are asked for: same shape, another prompt from its first KV
    block on, so that no engine that reads each variation once ever finds one in its prefix cache."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def size(self) -> int | None:
        """How many reads there are; None: any number."""
        ...

    def read(self, number: int, variation: int) -> ReadRequest:
        """One variation of one read."""
        ...


def count_reads(reads: ReadSet, wanted: int) -> int:
    """How many reads of a set are taken where `wanted` are asked for."""
    return wanted if reads.size is None else min(wanted, reads.size)
