"""Every collector of ours, on one registry. Label values come from closed sets only."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import log

from cachetools import LRUCache
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.canvas.decision import Answer, Outcome
from app.canvas.policy import StopReason
from engine.protocol import Fallback, ReadResult

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
NATS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
READS = (1, 2, 4, 8, 16, 32)
# More steps than any read takes part in.
REMEMBERED_STEPS = 4096


class EndReason(StrEnum):
    """Why a connection was ended that its caller would have kept."""

    HEADERS_LATE = "headers_late"
    HEADERS_TOO_LONG = "headers_too_long"
    NOT_HTTP = "not_http"
    BODY_UNREAD = "body_unread"
    ANSWER_NOT_TAKEN = "answer_not_taken"


class Metrics:
    """What operators see of this process. One instance per application."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter("decide_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "decide_request_seconds", "Wall time of a request.", ["route"], buckets=SECONDS, registry=registry
        )
        self.reads = Counter("decide_reads", "Canvas reads, by path.", ["path"], registry=registry)
        self.fallbacks = Counter(
            "decide_fallbacks", "Reads that were to be fused and took two steps.", ["reason"], registry=registry
        )
        self.engine_steps = Counter("decide_engine_steps", "Engine steps that reads took part in.", registry=registry)
        self.engine_step_seconds = Histogram(
            "decide_engine_step_seconds", "Wall time of an engine step.", buckets=SECONDS, registry=registry
        )
        self.reads_per_decision = Histogram(
            "decide_reads_per_decision",
            "Reads of each of its questions that a decision took.",
            buckets=READS,
            registry=registry,
        )
        self.entropy = Histogram(
            "decide_entropy", "Normalised entropy of answers.", ["kind"], buckets=SHARES, registry=registry
        )
        self.entropy_nats = Histogram(
            "decide_entropy_nats", "Entropy of answers, in nats.", ["kind"], buckets=NATS, registry=registry
        )
        self.label_mass = Histogram(
            "decide_label_mass",
            "Share of the vocabulary's probability that the labels had, where it was looked at.",
            ["kind"],
            buckets=SHARES,
            registry=registry,
        )
        self.outcomes = Counter("decide_outcomes", "Decisions, by outcome.", ["outcome"], registry=registry)
        self.stop_reasons = Counter("decide_stop_reasons", "Why reading stopped.", ["reason"], registry=registry)
        self.prompt_tokens = Counter("decide_prompt_tokens", "Prompt tokens of reads.", registry=registry)
        self.cached_tokens = Counter(
            "decide_cached_tokens", "Prompt tokens that the prefix cache spared.", registry=registry
        )
        self.inflight = Gauge("decide_inflight", "Requests being served.", registry=registry)
        self.rejected = Counter("decide_rejected", "Requests turned away.", ["reason"], registry=registry)
        self.connections_ended = Counter(
            "decide_connections_ended", "Connections of slow or broken callers.", ["reason"], registry=registry
        )
        # There from the start: a rate over a series that appears with its first event misses that event.
        for path in ("fused", "two_step"):
            self.reads.labels(path)
        for reason in Fallback:
            self.fallbacks.labels(reason.value)
        for end_reason in EndReason:
            self.connections_ended.labels(end_reason.value)
        for stop_reason in StopReason:
            self.stop_reasons.labels(stop_reason.value)
        self._seen_steps: LRUCache[int, bool] = LRUCache(REMEMBERED_STEPS)

    def observe_decision(
        self,
        *,
        reads: int,
        answers: Iterable[Answer],
        outcome: Outcome,
        stop_reason: StopReason,
    ) -> None:
        """Count a decision; its reads are counted as they are made."""
        for answer in answers:
            self.observe_answer(answer)
        self.outcomes.labels(outcome.value).inc()
        self.stop_reasons.labels(stop_reason.value).inc()
        self.reads_per_decision.observe(reads)

    def observe_read(self, result: ReadResult) -> None:
        """Count the reads of a request and the engine steps they were the first to report."""
        self.reads.labels("fused").inc(result.fused_reads)
        self.reads.labels("two_step").inc(len(result.branch_logprobs) - result.fused_reads)
        for fallback in result.fallbacks:
            self.fallbacks.labels(fallback.value).inc()
        self.prompt_tokens.inc(result.prompt_tokens)
        self.cached_tokens.inc(result.cached_tokens)
        for step in result.engine_steps:
            # Reads share steps, and each reports all of its own when it ends.
            if step.index not in self._seen_steps:
                self._seen_steps[step.index] = True
                self.engine_step_seconds.observe(step.seconds)
                self.engine_steps.inc()

    def observe_answer(self, answer: Answer) -> None:
        """Record how sure an answer is, if it is one."""
        if answer.outcome is Outcome.SKIPPED:
            return
        kind = answer.question.kind
        self.entropy.labels(kind).observe(answer.reading.entropy)
        self.entropy_nats.labels(kind).observe(answer.reading.entropy * log(len(answer.question.slot_options)))
        if answer.pool.label_mass is not None:
            self.label_mass.labels(kind).observe(answer.pool.label_mass)

    def exposition(self) -> bytes:
        """Ours and vLLM's own (`vllm:*`, on the client library's global registry), in the text format."""
        return generate_latest(self.registry) + generate_latest(REGISTRY)
