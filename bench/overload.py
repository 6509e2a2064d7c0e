"""What a service does when ten times more callers come than it lets in, and how soon it is itself again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from bench.client import connect, quantile
from bench.command import Command, positive
from bench.load import Load, load, load_and_probe
from bench.table import milliseconds, render_table

SECONDS, TIMES_MORE = 60, 10
# Of one caller, before and after; what follows a crowd is looked at this long after it has gone.
CALM_SECONDS, RECOVERY_SECONDS = 10.0, 10.0


async def measure_overload(arguments: Namespace) -> str:
    """Both tables."""
    url = arguments.url
    async with connect(url) as client:
        most = (await client.get("/health")).json()["limits"]["max_inflight"]
    before = await load(url, clients=1, seconds=CALM_SECONDS)
    crowd, probes = await load_and_probe(url, clients=TIMES_MORE * most, seconds=arguments.seconds)
    at_once = await load(url, clients=1, seconds=RECOVERY_SECONDS)
    after = await load(url, clients=1, seconds=CALM_SECONDS)
    loads = {
        "one caller, before": before,
        f"{TIMES_MORE * most} callers, {most} let in": crowd,
        "one caller, the first 10 s after": at_once,
        "one caller, from then on": after,
    }
    return "\n\n".join((_answers(loads), _probes(probes)))


def _answers(loads: dict[str, Load]) -> str:
    rows = []
    for name, made in loads.items():
        accepted, refused = made.statuses[200], made.statuses[429]
        other = made.statuses.total() - accepted - refused
        times = (milliseconds(quantile(made.seconds, share)) for share in (0.5, 0.95))
        rows.append((name, accepted, refused, other, *times))
    return render_table("Answers", ("callers", "200", "429", "others", "p50 ms", "p95 ms"), rows)


def _probes(probes: dict[str, list[float]]) -> str:
    rows = [
        (path, len(seconds), *(milliseconds(quantile(seconds, share)) for share in (0.5, 0.99, 1.0)))
        for path, seconds in probes.items()
    ]
    return render_table("Probes meanwhile", ("path", "n", "p50 ms", "p99 ms", "max ms"), rows)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the service (default %(default)s)")
    parser.add_argument("--seconds", type=positive, default=SECONDS, help="of the crowd (default %(default)s)")


OVERLOAD = Command(
    about="ten times more callers than are let in: answers, probes, recovery",
    add_options=_add_options,
    measure=measure_overload,
)
