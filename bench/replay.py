"""Does this server decide as the one that a log is of? Which decisions flip, and how far probabilities are apart."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.client import connect
from bench.command import Command
from bench.decision_log import Entry, ask_all, read_log
from bench.mcnemar import Discordant
from bench.meaning import meaning
from bench.record import add_log_options
from bench.table import render_table

SHOWN_FLIPS = 50
QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question, in the log and now.

    Attributes:
        line: of the log, from 1.
        before, after: members of `answers`.
        expected: the right value, alone in a tuple; empty where it is not known.
    """

    line: int
    question: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    expected: tuple[Any, ...]

    @property
    def is_flip(self) -> bool:
        """Whether the decision holds something else; of a probability, whether it is on the other side."""
        return held(self.before) != held(self.after)

    @property
    def difference(self) -> float:
        """The largest difference of an option's probability."""
        before, after = self.before["probabilities"], self.after["probabilities"]
        if before.keys() != after.keys():
            raise ValueError(f"line {self.line}: the options of {self.question} are others now")
        return float(max(abs(before[option] - after[option]) for option in before))

    def was_and_is(self, outcome: str) -> tuple[bool, bool]:
        """Whether its outcome was this one, and is."""
        return self.before["outcome"] == outcome, self.after["outcome"] == outcome

    def was_and_is_right(self) -> tuple[bool, bool]:
        """Whether it was as expected, and is."""
        right = [meaning(value) for value in self.expected]
        return held(self.before) in right, held(self.after) in right


def held(answer: Mapping[str, Any]) -> Hashable:
    """What an answer says: its value; of a probability, yes or no."""
    value, options = answer["value"], answer["probabilities"].keys()
    is_probability = isinstance(value, float) and options == {"true", "false"}
    return meaning(value > 0.5 if is_probability else value)


async def replay(arguments: Namespace) -> str:
    """Ask everything again; the tables."""
    entries = read_log(arguments.log)
    if not entries:
        return "the log is empty"
    async with connect(arguments.url) as client:
        answers = await ask_all(client, [entry.request for entry in entries])
    return report(list(changes(entries, answers)), fingerprints(entries, answers))


def changes(entries: Sequence[Entry], answers: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
    """Every question of every decision."""
    for line, (entry, answer) in enumerate(zip(entries, answers, strict=True), start=1):
        for question, before in entry.response["answers"].items():
            yield Change(
                line=line,
                question=question,
                before=before,
                after=answer["answers"][question],
                expected=(entry.expected[question],) if question in entry.expected else (),
            )


def fingerprints(entries: Sequence[Entry], answers: Sequence[Mapping[str, Any]]) -> str:
    """Whether both are one decision function."""
    before, after = ({one["fingerprint"] for one in found} for found in ([e.response for e in entries], answers))
    return "the same fingerprint" if before == after else "another fingerprint"


def report(changed: Sequence[Change], fingerprint: str) -> str:
    """The tables of a replay."""
    flips = [change for change in changed if change.is_flip]
    differences = sorted(change.difference for change in changed)
    at = [f"{differences[round(share * (len(differences) - 1))]:.2e}" for share in QUANTILES]
    listed = [(change.line, change.question, change.before["value"], change.after["value"]) for change in flips]
    parts = [
        render_table(
            f"Replayed, {fingerprint}",
            ("questions", "flips", *(f"probability off by, p{share * 100:g}" for share in QUANTILES)),
            [(len(changed), len(flips), *at)],
        ),
        render_table("McNemar's test", ("of", "lost", "gained", "p"), list(_tests(changed))),
        render_table("Flips", ("line", "question", "was", "is"), listed[:SHOWN_FLIPS]) if listed else "",
    ]
    return "\n\n".join(filter(None, parts))


def _tests(changed: Sequence[Change]) -> Iterator[tuple[object, ...]]:
    yield "being decided", *_row([change.was_and_is("decided") for change in changed])
    known = [change.was_and_is_right() for change in changed if change.expected]
    if known:
        yield "being right", *_row(known)


def _row(pairs: Sequence[tuple[bool, bool]]) -> tuple[int, int, str]:
    found = Discordant(lost=pairs.count((True, False)), gained=pairs.count((False, True)))
    return found.lost, found.gained, f"{found.p_value:.3f}"


REPLAY = Command(about="which decisions of a log flip on this server?", add_options=add_log_options, measure=replay)
