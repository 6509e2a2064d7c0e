"""How well a running service answers questions whose answers are known: the figures of the demo's model card."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from bench.client import connect
from bench.command import Command, positive
from bench.demo.answered import Answered, answer_all
from bench.demo.labelled import foreign, from_file, held_out
from bench.reliability import Bin, calibration_error, reliability
from bench.reliability_plot import plot_reliability
from bench.table import render_table
from engine.demo.family import Split, load_families

QUESTIONS, FOREIGN_MESSAGES = 6000, 200


async def measure_accuracy(arguments: Namespace) -> str:
    """All tables, of a service that is running."""
    families = load_families()
    known = list(held_out(families, Split.HELD_OUT, arguments.questions))
    natural = list(from_file(arguments.by_hand))
    random = Random(0)  # noqa: S311 - to be repeatable, not secret
    async with connect(arguments.url) as client:
        answered = await answer_all(client, known)
        once = await answer_all(client, [request.read_once() for request in known])
        by_hand = await answer_all(client, natural)
        permuted = await answer_all(client, [request.permuted(random) for request in known])
        elsewhere = await answer_all(client, list(foreign(families, FOREIGN_MESSAGES)))
    if arguments.plot:
        plot_reliability({"held-out patterns": _bins(answered)}, arguments.plot)
    return "\n\n".join(
        (
            _summary(answered, by_hand),
            _families(answered),
            _reliability(answered),
            _reread(once, answered),
            _permuted(answered, permuted),
            _foreign(elsewhere),
        )
    )


def accuracy(answered: Iterable[Answered]) -> float:
    """The share of right answers."""
    return _share(one.is_right for one in answered)


def _summary(answered: Sequence[Answered], by_hand: Sequence[Answered]) -> str:
    rows = [_summary_row("held-out patterns", answered), _summary_row("written by hand", by_hand)]
    header = ("questions", "n", "accuracy", "decided", "accuracy when decided", "calibration error")
    return render_table("Accuracy", header, rows)


def _summary_row(name: str, answered: Sequence[Answered]) -> tuple[object, ...]:
    decided = [one for one in answered if not one.is_uncertain]
    error = calibration_error(_bins(answered))
    shares = (accuracy(answered), len(decided) / len(answered), accuracy(decided))
    return name, len(answered), *(f"{share:.3f}" for share in shares), f"{error:.3f}"


def _families(answered: Sequence[Answered]) -> str:
    by_family: dict[str, list[Answered]] = defaultdict(list)
    for one in answered:
        by_family[one.family].append(one)
    rows = [(family, len(own), f"{accuracy(own):.3f}") for family, own in sorted(by_family.items())]
    return render_table("Held-out patterns, by family", ("family", "n", "accuracy"), rows)


def _reliability(answered: Sequence[Answered]) -> str:
    rows = [(f"{one.confidence:.3f}", one.count, f"{one.accuracy:.3f}") for one in _bins(answered)]
    return render_table("Reliability", ("mean probability", "n", "accuracy"), rows)


def _reread(once: Sequence[Answered], again: Sequence[Answered]) -> str:
    """Whether reading again makes answers better that are uncertain after one read."""
    pairs = [(one, other) for one, other in zip(once, again, strict=True) if one.is_uncertain]
    rows = []
    if pairs:
        first, last = zip(*pairs, strict=True)
        rows = [(len(pairs), f"{accuracy(first):.4f}", f"{accuracy(last):.4f}", f"{1 - _uncertain(last):.3f}")]
    header = ("uncertain after one read", "accuracy of that read", "of all reads", "decided in the end")
    return render_table("Reading again", header, rows)


def _permuted(answered: Sequence[Answered], permuted: Sequence[Answered]) -> str:
    flips = sum(one.meaning != other.meaning for one, other in zip(answered, permuted, strict=True))
    rows = [(f"{accuracy(answered):.4f}", f"{accuracy(permuted):.4f}", f"{flips / len(answered):.4f}")]
    return render_table("Options in another order", ("accuracy", "accuracy, permuted", "flips"), rows)


def _foreign(answered: Sequence[Answered]) -> str:
    open_ones = [one for one in answered if one.expected is None]
    absent = [one for one in answered if one.expected is not None]
    rows = [
        ("without an option for it", len(open_ones), f"{_uncertain(open_ones):.3f}", "-"),
        ("with an option for it", len(absent), f"{_uncertain(absent):.3f}", f"{accuracy(absent):.3f}"),
    ]
    header = ("choices", "n", "uncertain", "none of these")
    return render_table("Messages about cars and cooking", header, rows)


def _bins(answered: Sequence[Answered]) -> list[Bin]:
    return reliability([one.probability for one in answered], [one.is_right for one in answered])


def _uncertain(answered: Iterable[Answered]) -> float:
    return _share(one.is_uncertain for one in answered)


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the service (default %(default)s)")
    parser.add_argument("--questions", type=positive, default=QUESTIONS, help="at least so many held-out ones")
    parser.add_argument("--by-hand", type=Path, default=Path("tests/demo/natural_messages.json"), help="JSON file")
    parser.add_argument("--plot", type=Path, help="PNG file to write the reliability to")


ACCURACY = Command(about="accuracy of the demo checkpoint", add_options=_add_options, measure=measure_accuracy)
