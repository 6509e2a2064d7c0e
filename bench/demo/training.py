"""Training: curriculum, losses, resuming, progress.

Everything is drawn from one seed and the number of a round, so an interrupted run goes on as if it had not been.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.demo.batches import Lesson, lessons
from bench.demo.examples import ExampleMaker
from bench.demo.muon import Muon
from bench.demo.network import Network, Read, rms_norm
from engine.demo.family import Family, Split
from engine.demo.sample import Hardness, Sampler

ROUND_SAMPLES = 256
# From one question with two options to everything; each until the next share of the steps.
CURRICULUM: tuple[tuple[float, Hardness], ...] = (
    (0.04, Hardness(questions=1, options=2, extras=0, absent_share=0.05)),
    (0.10, Hardness(questions=1, options=4, extras=0, absent_share=0.10)),
    (0.18, Hardness(questions=2, options=4, extras=1, absent_share=0.12)),
    (0.30, Hardness(questions=3, options=6, extras=1)),
    (1.00, Hardness(questions=6, options=8, extras=3)),
)
# After this layer options and sentences should stand for something, and after the next slots should.
MARK_LAYER, SLOT_LAYER = 1, 2
MARK_LOSS, LABEL_LOSS, CONCEPT_LOSS, BALANCE_LOSS = 0.5, 0.15, 0.5, 0.01
MATRIX_LR, OTHER_LR = 0.01, 3e-3
WARM_UP_STEPS, DECAY_FROM = 60, 0.4
GRADIENT_NORM = 1.0


@dataclass(slots=True)
class Progress:
    """How far a run is; saved with the weights."""

    rounds: int = 0
    steps: int = 0
    reads: int = 0
    seconds: float = 0.0


class Helpers(nn.Module):
    """Heads that make the network learn fast and are not shipped."""

    def __init__(self, hidden: int, concepts: int) -> None:
        super().__init__()
        self.mark_concepts, self.slot_concepts = nn.Linear(hidden, concepts), nn.Linear(hidden, concepts)


class Trainer:
    """Trains a network for so many rounds of samples."""

    def __init__(
        self, network: Network, families: tuple[Family, ...], maker: ExampleMaker, *, rounds: int, seed: int = 0
    ) -> None:
        torch.manual_seed(seed)
        self.network, self.progress = network, Progress()
        self._families, self._maker, self._rounds, self._seed = families, maker, rounds, seed
        self._helpers = Helpers(network.sizes.hidden, len(maker.concepts))
        matrices = [parameter for layer in network.layers for parameter in _matrices(layer)]
        chosen = set(map(id, matrices))
        everything = [*network.parameters(), *self._helpers.parameters()]
        self._others = [parameter for parameter in everything if id(parameter) not in chosen]
        self._optimizers: tuple[torch.optim.Optimizer, ...] = (
            Muon(matrices, lr=MATRIX_LR),
            torch.optim.AdamW(self._others, lr=OTHER_LR, betas=(0.9, 0.98), weight_decay=0.01),
        )

    def run(self, folder: Path, *, save_every_seconds: float = 120.0) -> Iterator[dict[str, float]]:
        """Train, going on from what is in the folder; yields a line of progress per round."""
        self._load(folder)
        saved = time.monotonic()
        while self.progress.rounds < self._rounds:
            yield self._round()
            if time.monotonic() - saved > save_every_seconds or self.progress.rounds == self._rounds:
                self._save(folder)
                saved = time.monotonic()

    def _round(self) -> dict[str, float]:
        started = time.monotonic()
        random = Random(f"{self._seed} {self.progress.rounds}")  # noqa: S311 - to be repeatable, not secret
        share = self.progress.rounds / self._rounds
        sampler = Sampler(self._families, Split.TRAINED, hardness_at(share))
        samples = (sampler.sample(random) for _ in range(ROUND_SAMPLES))
        examples = [example for sample in samples for example in self._maker.examples(random, sample)]
        batches = list(lessons(examples))
        random.shuffle(batches)
        right = slots = 0
        loss = 0.0
        for lesson in batches:
            read, lesson_loss = self._learn(lesson, learning_rate_at(share, self.progress.steps))
            right += count_right(read.logits, lesson)
            slots += len(lesson.targets)
            loss += lesson_loss * len(lesson.targets)
        self.progress.rounds += 1
        self.progress.reads += len(examples)
        self.progress.seconds += time.monotonic() - started
        return {**asdict(self.progress), "loss": loss / slots, "accuracy": right / slots}

    def _learn(self, lesson: Lesson, learning_rate: float) -> tuple[Read, float]:
        read = self.network(lesson.batch)
        slot_loss = functional.cross_entropy(read.logits, lesson.targets)
        (slot_loss + self._helping_loss(read, lesson)).backward()
        nn.utils.clip_grad_norm_(self._others, GRADIENT_NORM)
        for optimizer, base in zip(self._optimizers, (MATRIX_LR, OTHER_LR), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = base * learning_rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.steps += 1
        return read, slot_loss.item()

    def _helping_loss(self, read: Read, lesson: Lesson) -> Tensor:
        marks = rms_norm(read.layers[MARK_LAYER][lesson.mark_reads, lesson.mark_columns])
        slots = rms_norm(read.layers[SLOT_LAYER][lesson.batch.slot_reads, lesson.batch.slot_columns])
        has_label = lesson.mark_labels >= 0
        labels = marks[has_label] @ self.network.embedding.T
        balance = sum((routed.flatten(0, 1).mean(0).square().sum() for routed in read.routed), torch.zeros(()))
        return (
            MARK_LOSS * functional.cross_entropy(self._helpers.mark_concepts(marks), lesson.mark_concepts)
            + LABEL_LOSS * functional.cross_entropy(labels, lesson.mark_labels[has_label])
            + CONCEPT_LOSS * functional.cross_entropy(self._helpers.slot_concepts(slots), lesson.concepts)
            + BALANCE_LOSS * self.network.sizes.experts * balance
        )

    def _save(self, folder: Path) -> None:
        """Beside the former state first, so that an interruption leaves one of the two whole."""
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "network": self.network.state_dict(),
            "helpers": self._helpers.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "progress": asdict(self.progress),
        }
        torch.save(state, folder / "state.new")
        (folder / "state.new").replace(folder / "state.pt")
        (folder / "progress.json").write_text(json.dumps(asdict(self.progress)) + "\n")

    def _load(self, folder: Path) -> None:
        if not (folder / "state.pt").exists():
            return
        state = torch.load(folder / "state.pt", weights_only=True)
        self.network.load_state_dict(state["network"])
        self._helpers.load_state_dict(state["helpers"])
        for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])


def hardness_at(share: float) -> Hardness:
    """How hard samples are when this share of the rounds is done."""
    return next(hardness for until, hardness in CURRICULUM if share < until)


def learning_rate_at(share: float, steps: int) -> float:
    """Up from zero at first, and down to nearly zero from a point on."""
    warm = min(1.0, (steps + 1) / WARM_UP_STEPS)
    return warm * (1.0 if share < DECAY_FROM else max(0.02, 1 - (share - DECAY_FROM) / (1 - DECAY_FROM)))


def count_right(logits: Tensor, lesson: Lesson) -> int:
    """Slots whose likeliest label, among those of their question, is the right one."""
    targets = [target for example in lesson.examples for target in example.targets]
    rows = zip(logits.detach(), targets, strict=True)
    return sum(int(row[list(target.label_token_ids)].argmax()) == target.right for row, target in rows)


def _matrices(layer: nn.Module) -> Iterator[Tensor]:
    for name, parameter in layer.named_parameters():
        if parameter.ndim > 1 and name != "router":
            yield parameter
