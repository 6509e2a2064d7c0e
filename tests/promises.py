"""Every promise, the test that keeps it, and a change to the code that the test notices.

`python -m tests.promises` makes each change in a copy of the sources and runs the test there, which has to fail.
`python -m tests.promises --table` prints the table in docs/behaviour.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("app", "bench", "docs", "engine", "tests", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
TABLE_HEAD = "| promise | is kept by | which fails when |\n|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One promise.

    Attributes:
        id: of shared use: R reliability, S security, P privacy, C contract.
        words: what is promised.
        test: that keeps it, by pytest's name for it.
        file: that is changed so that it fails.
        old, new: what is changed, which stands there once, and to what.
        breaks: what the change makes of the service.
    """

    id: str
    words: str
    test: str
    file: str
    old: str
    new: str
    breaks: str

    @property
    def row(self) -> str:
        """Of the table."""
        place, _, name = self.test.removeprefix("tests/").partition("::")
        return f"| **{self.id}** {self.words} | `{place}`: `{name.partition('[')[0]}` | {self.breaks} |"


PROMISES = (
    Promise(
        id="R1",
        words="never more than the permits; the next is 429 before tokenising",
        test="tests/app/test_decisions.py::test_the_limit_is_checked_before_tokenising",
        file="app/admission.py",
        old="        if self.inflight >= self.max_inflight or self.tokens.is_spent:\n            raise Overloaded\n",
        new="",
        breaks="permits are not counted",
    ),
    Promise(
        id="R2",
        words="tokens under way are bounded",
        test="tests/app/test_decisions.py::test_tokens_under_way_are_bounded",
        file="app/decisions.py",
        old="                account.take(case.tokens)\n",
        new="",
        breaks="tokens are not counted",
    ),
    Promise(
        id="R3",
        words="`/health` and `/metrics` answer under full load",
        test="tests/app/routers/test_decide.py::test_one_more_than_max_inflight",
        file="app/routers/health.py",
        old="    lifecycle: Lifecycle = request.state.lifecycle\n",
        new="    lifecycle: Lifecycle = request.state.lifecycle\n    request.state.admission.require_room()\n",
        breaks="probes need a permit",
    ),
    Promise(
        id="R4",
        words="a caller that leaves has its read aborted",
        test="tests/app/test_connection.py::test_a_caller_that_leaves",
        file="app/departure.py",
        old="return_when=asyncio.FIRST_COMPLETED",
        new="return_when=asyncio.ALL_COMPLETED",
        breaks="the work is waited for, whoever leaves",
    ),
    Promise(
        id="R5",
        words="no `BaseHTTPMiddleware`",
        test="tests/app/test_middleware.py::test_no_base_http_middleware",
        file="app/main.py",
        old="    for route in (decide,",
        new=(
            "    from starlette.middleware.base import BaseHTTPMiddleware\n\n"
            "    app.add_middleware(BaseHTTPMiddleware)\n    for route in (decide,"
        ),
        breaks="one is added",
    ),
    Promise(
        id="R6",
        words="every request ends by its deadline, its read aborted",
        test="tests/app/test_decisions.py::test_a_deadline_aborts_the_read",
        file="app/decisions.py",
        old="            async with asyncio.timeout(deadline_seconds):",
        new="            async with asyncio.timeout(None):",
        breaks="the first read may take for ever",
    ),
    Promise(
        id="R7",
        words="after a crowd the service is itself again",
        test="tests/bench/test_load.py::test_a_service_is_itself_again_after_a_crowd",
        file="app/admission.py",
        old="            self._inflight[tenant.name] -= 1\n",
        new="            self._inflight[tenant.name] -= self.inflight < self.max_inflight\n",
        breaks="a permit that was the last is not given back",
    ),
    Promise(
        id="R8",
        words="a stop says 503 on an open port and answers what was accepted",
        test="tests/app/test_server.py::test_a_stop_waits_for_what_was_accepted",
        file="app/server.py",
        old="                    await self._admission.until_idle()\n",
        new="                    await asyncio.sleep(0)\n",
        breaks="it waits for no answer",
    ),
    Promise(
        id="R9",
        words="exit codes; a second signal cuts off",
        test="tests/app/test_server.py::test_a_second_signal_stops_at_once",
        file="app/server.py",
        old="            self._stop_at_once()\n            return\n",
        new="            return\n",
        breaks="the second signal is ignored",
    ),
    Promise(
        id="R10",
        words="the grace period that is asked for is long enough",
        test="tests/contract/test_stop_arithmetic.py::test_the_page_adds_up_what_the_program_does",
        file="app/server.py",
        old="SENDING_SECONDS = 2\n",
        new="SENDING_SECONDS = 20\n",
        breaks="a stop takes longer than the page says",
    ),
    Promise(
        id="R11",
        words="a stop while loading ends at once",
        test="tests/app/test_startup.py::test_stopping_while_the_engine_starts",
        file="app/main.py",
        old="            supervisor.cancel()\n",
        new="",
        breaks="it waits for the engine to come up",
    ),
    Promise(
        id="R12",
        words="not ready before a real decision",
        test="tests/app/test_startup.py::test_ready_only_after_a_real_decision",
        file="app/startup.py",
        old="        await service.decide_unguarded(FIRST_DECISION)\n",
        new="",
        breaks="it is ready when the engine is up",
    ),
    Promise(
        id="R13",
        words="a dead engine: 503 for everybody, and the process exits",
        test="tests/chaos/test_engine.py::test_a_killed_engine[core]",
        file="app/startup.py",
        old="            on_failure(phase)\n",
        new="            pass\n",
        breaks="the process lives on",
    ),
    Promise(
        id="R14",
        words="a killed server leaves no engine",
        test="tests/process/test_lifetime.py::test_sigkill_while_loading",
        file="engine/orphan.py",
        old="    obey_parent_process()\n    from vllm",
        new="    from vllm",
        breaks="engine processes do not watch their parent",
    ),
    Promise(
        id="R15",
        words="a failure is that request's only, or loud; never a silent hang",
        test="tests/app/test_startup.py::test_an_engine_that_lives_but_does_not_answer",
        file="app/startup.py",
        old="                await self._hear(engine)\n",
        new="",
        breaks="the service makes no read of its own",
    ),
    Promise(
        id="R16",
        words="nothing is left of what is done",
        test="tests/app/test_main.py::test_many_starts_and_stops_leave_nothing",
        file="app/main.py",
        old="            await startup.close()\n",
        new=(
            "            await startup.close()\n"
            '            globals().setdefault("kept", []).append(open("/dev/null"))\n'
        ),
        breaks="each start and stop keeps a file open",
    ),
    Promise(
        id="R17",
        words="the same request, the same decision",
        test="tests/process/test_decisions.py::test_a_repeat_is_a_repeat",
        file="app/decisions.py",
        old="        seed = seed_of(case.prompt_token_ids) if request.seed is None else request.seed\n",
        new="        seed = secrets.randbelow(1 << 32) if request.seed is None else request.seed\n",
        breaks="the seed is drawn",
    ),
    Promise(
        id="R18",
        words="what is no number never becomes a decision",
        test="tests/app/routers/test_decide.py::test_logprobs_that_are_no_numbers",
        file="app/canvas/distribution.py",
        old="    if not all(map(math.isfinite, logprobs)):\n",
        new="    if not logprobs:\n",
        breaks="they are not looked at",
    ),
    Promise(
        id="R19",
        words="prompt and canvas in one engine step; repeats hit the prefix cache",
        test="tests/process/test_rubric_language.py::test_one_engine_step",
        file="engine/scheduler.py",
        old="        reason = fallback_reason(candidate, ",
        new="        reason = Fallback.INELIGIBLE or fallback_reason(candidate, ",
        breaks="no read is fused",
    ),
    Promise(
        id="S1",
        words="everything needs a key but what is listed",
        test="tests/app/test_authentication.py::test_every_route_needs_a_key_but_those_listed",
        file="app/authentication.py",
        old='frozenset({"/health", "/metrics"})',
        new='frozenset({"/health", "/metrics", "/rubrics/check"})',
        breaks="one more is listed",
    ),
    Promise(
        id="S2",
        words="keys: digests, constant time, all of them, none short",
        test="tests/app/test_access.py::test_every_key_is_looked_at",
        file="app/access.py",
        old="                found = self._tenants[known.tenant]\n",
        new="                found = self._tenants[known.tenant]\n                break\n",
        breaks="the search ends at the key that is found",
    ),
    Promise(
        id="S3",
        words="tenants share no blocks of the prefix cache",
        test="tests/app/test_authentication.py::test_tenants_share_nothing",
        file="app/decisions.py",
        old="cache_salt=asked.tenant.cache_salt",
        new="cache_salt=None",
        breaks="reads have no salt",
    ),
    Promise(
        id="S4",
        words="no text of a caller is salt, id or path in the engine",
        test="tests/app/test_access.py::test_salts",
        file="app/tenant.py",
        old="cache_salt=hmac.new(",
        new="cache_salt=name + hmac.new(",
        breaks="the salt has the tenant's name in it",
    ),
    Promise(
        id="S5",
        words="ids are ours; a caller's `X-Request-ID` changes nothing",
        test="tests/app/test_middleware.py::test_a_callers_request_id_changes_nothing",
        file="app/middleware.py",
        old='        scope["onestep.request_id"] = new_request_id()\n',
        new=(
            '        asked = dict(scope["headers"]).get(REQUEST_ID_HEADER, b"").decode()\n'
            '        scope["onestep.request_id"] = asked or new_request_id()\n'
        ),
        breaks="the caller's is taken",
    ),
    Promise(
        id="S6",
        words="no bytes stop the engine; the next good request succeeds",
        test="tests/fuzz/test_bodies.py::test_any_request_is_answered_as_promised",
        file="app/body.py",
        old="    except (UnicodeDecodeError, json.JSONDecodeError):\n",
        new="    except json.JSONDecodeError:\n",
        breaks="bytes that are no UTF-8 are a bug of ours",
    ),
    Promise(
        id="S7",
        words="rubrics are a closed subset; nothing remote, no cycles, no patterns",
        test="tests/app/canvas/test_keyword.py::test_a_keyword_that_constrains_is_never_skipped",
        file="app/canvas/keyword.py",
        old='"maxLength", "pattern"),',
        new='"maxLength"),',
        breaks="`pattern` is ignored",
    ),
    Promise(
        id="S8",
        words="bodies are bounded by the bytes that arrive, and by those they hold",
        test="tests/app/test_body.py::test_zstd_bodies_at_the_byte_limit",
        file="app/body.py",
        old="    if len(decoded) > limit_bytes:\n",
        new="    if len(decoded) > limit_bytes + 1:\n",
        breaks="one byte more is taken",
    ),
    Promise(
        id="S9",
        words="what is JSON at its edges is 400",
        test="tests/app/test_body.py::test_refused",
        file="app/body.py",
        old="    if len(found) < len(pairs):\n",
        new="    if not pairs and found:\n",
        breaks="a key may be there twice",
    ),
    Promise(
        id="S10",
        words="slow callers hold nothing",
        test="tests/app/test_connection.py::test_headers_that_do_not_come",
        file="app/connection.py",
        old="        super().connection_made(transport)  # type: ignore[arg-type]\n        self._heading.start()\n",
        new="        super().connection_made(transport)  # type: ignore[arg-type]\n",
        breaks="headers may take for ever",
    ),
    Promise(
        id="S11",
        words="nothing multiplies without a bound",
        test="tests/app/routers/test_decide.py::test_more_questions_than_a_canvas_holds",
        file="app/canvas/rubric.py",
        old="    if len(rubric.questions) > most or not (",
        new="    if not (",
        breaks="questions are not counted",
    ),
    Promise(
        id="S12",
        words="what is kept of rubrics is bounded and holds no text",
        test="tests/app/test_decisions.py::test_plans_kept_are_bounded",
        file="app/plans.py",
        old="        self._kept: LRUCache[bytes, Plan] = LRUCache(capacity, ",
        new="        self._kept: LRUCache[bytes, Plan] = LRUCache(1 << 30, ",
        breaks="any number is kept",
    ),
    Promise(
        id="P1",
        words="no text of a request leaves but in its answer",
        test="tests/process/test_canary.py::test_no_text_of_a_request_leaks",
        file="app/middleware.py",
        old="            route=route,\n",
        new='            route=scope["path"],\n',
        breaks="paths that do not exist are logged",
    ),
    Promise(
        id="P2",
        words="log lines are a fixed list of fields",
        test="tests/app/test_logging.py::test_the_list_of_fields",
        file="app/logging.py",
        old='    "reason": str,\n',
        new='    "reason": str,\n    "state": str,\n',
        breaks="one is added",
    ),
    Promise(
        id="P3",
        words="the engine's own logging is pinned",
        test="tests/engine/test_settings.py::test_the_log_level_is_pinned",
        file="engine/settings.py",
        old='        "VLLM_LOGGING_LEVEL": "ERROR",\n',
        new="",
        breaks="the environment's level counts",
    ),
    Promise(
        id="P4",
        words="labels of metrics come from closed sets",
        test="tests/app/test_middleware.py::test_a_path_is_no_label",
        file="app/middleware.py",
        old='getattr(scope.get("route"), "path", UNMATCHED_ROUTE)',
        new='getattr(scope.get("route"), "path", scope["path"])',
        breaks="unknown paths are labels",
    ),
    Promise(
        id="C1",
        words="every refusal is one document, with a status that is documented",
        test="tests/contract/test_problem_shape.py::test_every_route_documents_its_refusals",
        file="app/routers/decide.py",
        old="problem_responses(400, 401, 408,",
        new="problem_responses(400, 401,",
        breaks="a status is not documented",
    ),
    Promise(
        id="C2",
        words="what others build upon changes only on purpose",
        test="tests/contract/test_snapshots.py::test_metrics_are_what_was_agreed_on",
        file="app/metrics.py",
        old='"decide_inflight"',
        new='"decide_in_flight"',
        breaks="a metric is renamed",
    ),
)


@contextmanager
def broken(promise: Promise) -> Iterator[Path]:
    """A copy of the sources in which the promise is not kept."""
    with TemporaryDirectory() as folder:
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder) / name)
        changed = Path(folder) / promise.file
        changed.write_text(changed.read_text().replace(promise.old, promise.new))
        yield Path(folder)


def is_noticed(promise: Promise) -> bool:
    """Whether the test fails, and not for want of being there."""
    with broken(promise) as folder:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", promise.test]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{promise.id}: {promise.test} could not be run:\n{done.stdout[-2000:]}")
    return done.returncode == 1


def table() -> str:
    """As docs/behaviour.md has it."""
    return "\n".join((TABLE_HEAD, *(promise.row for promise in PROMISES)))


def main() -> None:
    """Break each promise, or those that are named, and see its test fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=main.__doc__)
    parser.add_argument("ids", nargs="*", help="as R1; all of them unless told")
    parser.add_argument("--table", action="store_true", help="print the table instead")
    arguments = parser.parse_args()
    if arguments.table:
        print(table())
        return
    asked = [promise for promise in PROMISES if promise.id in arguments.ids or not arguments.ids]
    results = {promise.id: is_noticed(promise) for promise in asked if print(promise.id, flush=True) is None}
    unnoticed = [promise_id for promise_id, noticed in results.items() if not noticed]
    print(f"{len(results) - len(unnoticed)} of {len(results)} broken promises were noticed", *unnoticed)
    sys.exit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
