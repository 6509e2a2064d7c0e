"""Training: curriculum, losses, resuming, progress.

Everything is drawn from a seed and the number of a round, so an interrupted run goes on as if it had not been.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.demo.batches import Lesson, lessons
from bench.demo.examples import Example, ExampleMaker
from bench.demo.faults import Fault, with_fault
from bench.demo.muon import Muon
from bench.demo.network import Network, Read, rms_norm
from engine.demo.family import Family, Split
from engine.demo.sample import Hardness, Sample, Sampler

# Steps until progress is reported and the learning rate changes, and samples that are laid out together.
ROUND_STEPS, SAMPLES_TOGETHER = 32, 192

EASY = Hardness(questions=1, options=2, extras=0, absent_share=0.05, open_share=0.0, foreign_share=0.0)
MODERATE = Hardness(questions=2, options=4, extras=1, absent_share=0.1)
# How to find an option for what is said is learned soonest where there is little to say, and then known for all.
FEW_FAMILIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a run.

    Attributes:
        until: the share of the rounds at which it ends.
        hardness: of the samples about which something is asked.
        statements: the share of samples about which nothing is: they teach what sentences say, many at a time.
        relabelled: the share of samples with labels in another order than the service's.
        faults: the share of canvases that are laid out or read wrongly.
        dropout: see `Network`.
        families: how many of them are asked about; None: all. Sentences say things of all of them.
        rates: the learning rate at its beginning and at its end, as shares of the highest.
        reader_rate: by what that is multiplied for what reads sentences: embeddings, first layers and concepts.
    """

    until: float
    hardness: Hardness
    statements: float
    relabelled: float = 0.0
    faults: float = 0.0
    dropout: float = 0.1
    families: int | None = None
    rates: tuple[float, float] = (1.0, 1.0)
    reader_rate: float = 0.3


# First what sentences say, with a learning rate that ends low: at a high one a network understands no more after hours
# than after minutes. Then, with that kept, how to find an option for it: from one question with two options to
# everything. Dropout and labels in another order come late: they keep a network that has found nothing yet from finding
# anything.
CURRICULUM = (
    Stage(until=0.22, hardness=EASY, statements=1.0, dropout=0.0, rates=(1.0, 0.1), reader_rate=1.0),
    Stage(until=0.31, hardness=EASY, statements=0.3, dropout=0.0, families=FEW_FAMILIES),
    Stage(until=0.41, hardness=EASY, statements=0.3, dropout=0.0),
    Stage(until=0.50, hardness=MODERATE, statements=0.2, dropout=0.0, faults=0.1),
    Stage(
        until=0.58,
        hardness=Hardness(questions=3, options=6, extras=1),
        statements=0.2,
        relabelled=0.1,
        faults=0.12,
    ),
    Stage(until=1.00, hardness=Hardness(), statements=0.2, relabelled=0.3, faults=0.12, rates=(1.0, 0.02)),
)
# After this layer options and sentences should stand for something, and after the next slots should.
MARK_LAYER, SLOT_LAYER = 1, 2
MARK_LOSS, LABEL_LOSS, CONCEPT_LOSS, BALANCE_LOSS = 0.5, 0.15, 0.5, 0.01
# Where a head looks is guided too: without that, slots take very long to find out that there is something to see.
GUIDE_LOSS, GUIDED_HEAD = 0.5, 0
# Not the same one: where sentences are read, that head has something else to do by the time there are slots.
ASKING_HEAD = 1
LEAST_ATTENTION = 1e-6
MATRIX_LR, OTHER_LR = 0.01, 3e-3
WARM_UP_STEPS = 60
GRADIENT_NORM = 1.0


@dataclass(slots=True)
class Progress:
    """How far a run is; saved with the weights."""

    rounds: int = 0
    steps: int = 0
    reads: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """What a round has seen, and how much of it was known."""

    reads: int = 0
    slots: int = 0
    slots_right: int = 0
    loss: float = 0.0
    sentences: int = 0
    sentences_right: int = 0

    def add(self, lesson: Lesson, logits: Tensor, slot_loss: Tensor, mark_concepts: Tensor) -> None:
        """Count a lesson."""
        is_sentence = lesson.mark_labels < 0
        known = mark_concepts.argmax(-1) == lesson.mark_concepts
        self.reads += len(lesson.examples)
        self.slots += len(logits)
        self.slots_right += count_right(logits, lesson)
        self.loss += slot_loss.item() * len(logits)
        self.sentences += int(is_sentence.sum())
        self.sentences_right += int((known & is_sentence).sum())

    def shares(self) -> dict[str, float]:
        """Mean loss of slots, slots read rightly, sentences understood."""
        return {
            "loss": self.loss / max(self.slots, 1),
            "accuracy": self.slots_right / max(self.slots, 1),
            "understood": self.sentences_right / max(self.sentences, 1),
        }


class Helpers(nn.Module):
    """Heads that make the network learn fast and are not shipped."""

    def __init__(self, hidden: int, concepts: int) -> None:
        super().__init__()
        # One for sentences, options and slots: what is the same is to look the same.
        self.concepts = nn.Linear(hidden, concepts)


class Trainer:
    """Trains a network for so many rounds of samples."""

    def __init__(
        self,
        network: Network,
        families: tuple[Family, ...],
        maker: ExampleMaker,
        *,
        rounds: int,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self.network, self.progress = network, Progress()
        self._families, self._maker, self._rounds, self._seed = families, maker, rounds, seed
        self._helpers = Helpers(network.sizes.hidden, len(maker.concepts))
        readers = [network.embedding, *network.layers[: MARK_LAYER + 1], self._helpers]
        reading = [parameter for module in readers for parameter in module.parameters()]
        known = set(map(id, reading))
        self._vectors: list[nn.Parameter] = []
        self._optimizers: list[torch.optim.Optimizer] = []
        for own in (reading, [parameter for parameter in network.parameters() if id(parameter) not in known]):
            self._add_optimizers(own, set(map(id, _matrices(network))))

    def _add_optimizers(self, parameters: Sequence[nn.Parameter], matrices: set[int]) -> None:
        """Muon for matrices, AdamW for the rest."""
        vectors = [one for one in parameters if id(one) not in matrices]
        self._vectors += vectors
        self._optimizers += [
            Muon([one for one in parameters if id(one) in matrices], lr=MATRIX_LR),
            torch.optim.AdamW(vectors, lr=OTHER_LR, betas=(0.9, 0.98), weight_decay=0.01),
        ]

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
        share = self.progress.rounds / self._rounds
        self.network.train()
        self.network.set_dropout(stage_at(share).dropout)
        tally = Tally()
        for lesson in islice(self._lessons(share), ROUND_STEPS):
            self._learn(lesson, learning_rates_at(share, self.progress.steps), tally)
        self.progress.rounds += 1
        self.progress.reads += tally.reads
        self.progress.seconds += time.monotonic() - started
        return {**asdict(self.progress), **tally.shares()}

    def _lessons(self, share: float) -> Iterator[Lesson]:
        """This round's, without end."""
        random = Random(f"{self._seed} {self.progress.rounds}")  # noqa: S311 - to be repeatable, not secret
        torch.manual_seed(random.getrandbits(53))
        stage = stage_at(share)
        sampler = Sampler(self._families, Split.TRAINED, stage.hardness)
        asker = Sampler(self._asked_about(stage.families), Split.TRAINED, stage.hardness)

        def draw() -> Sample:
            return sampler.statements(random) if random.random() < stage.statements else asker.sample(random)

        while True:
            drawn = [
                one for _ in range(SAMPLES_TOGETHER) for one in self._maker.examples(random, draw(), stage.relabelled)
            ]
            together = list(lessons([self._with_faults(random, one, stage.faults) for one in drawn]))
            random.shuffle(together)
            yield from together

    def _asked_about(self, count: int | None) -> Sequence[Family]:
        """So many families, the same ones every time."""
        shuffled = Random(self._seed).sample(self._families, len(self._families))  # noqa: S311 - to be repeatable
        return shuffled[:count]

    def _with_faults(self, random: Random, example: Example, share: float) -> Example:
        if not example.targets or random.random() >= share:
            return example
        return with_fault(example, random.choice(tuple(Fault)), self._maker.thought_tokens)

    def _learn(self, lesson: Lesson, learning_rates: tuple[float, float], tally: Tally) -> None:
        has_slots = len(lesson.concepts) > 0
        read = self.network(lesson.batch, None if has_slots else MARK_LAYER + 1)
        marks = rms_norm(read.layers[MARK_LAYER].rows[lesson.mark_reads, lesson.mark_columns])
        mark_concepts = self._helpers.concepts(marks)
        loss = self._mark_loss(read, lesson, marks, mark_concepts)
        slot_loss = torch.zeros(())
        if has_slots:
            slot_loss = _slot_loss(read.logits, lesson)
            loss = loss + slot_loss + self._slot_helping_loss(read, lesson)
        loss.backward()
        nn.utils.clip_grad_norm_(self._vectors, GRADIENT_NORM)
        bases = [rate * base for rate in learning_rates for base in (MATRIX_LR, OTHER_LR)]
        for optimizer, base in zip(self._optimizers, bases, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = base
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.steps += 1
        tally.add(lesson, read.logits, slot_loss, mark_concepts)

    def _mark_loss(self, read: Read, lesson: Lesson, marks: Tensor, mark_concepts: Tensor) -> Tensor:
        """What options and sentences stand for, and that no expert does all the work."""
        has_label = lesson.mark_labels >= 0
        labels = marks[has_label] @ read.embedding.T
        balance = sum((one.routed.flatten(0, 1).mean(0).square().sum() for one in read.layers), torch.zeros(()))
        return (
            MARK_LOSS * _mean_loss(mark_concepts, lesson.mark_concepts)
            + LABEL_LOSS * _mean_loss(labels, lesson.mark_labels[has_label])
            + BALANCE_LOSS * self.network.sizes.experts * balance
        )

    def _slot_helping_loss(self, read: Read, lesson: Lesson) -> Tensor:
        slots = rms_norm(read.layers[SLOT_LAYER].rows[lesson.batch.slot_reads, lesson.batch.slot_columns])
        concept_loss = _mean_loss(self._helpers.concepts(slots), lesson.concepts)
        return CONCEPT_LOSS * concept_loss + GUIDE_LOSS * self._guiding_loss(read, lesson)

    def _guiding_loss(self, read: Read, lesson: Lesson) -> Tensor:
        """One head finds the own question, one in the next layer what is said about it, and one in the next the option
        that says the same."""
        attention = read.slot_attention(lesson.batch, MARK_LAYER, ASKING_HEAD).exp()
        own = attention[lesson.asked_slots, lesson.asked_columns]
        found = torch.zeros(len(attention)).index_add(0, lesson.asked_slots, own)[lesson.asked_slots.unique()]
        said = read.slot_attention(lesson.batch, SLOT_LAYER, GUIDED_HEAD)[
            lesson.sentence_slots, lesson.sentence_columns
        ]
        right = read.slot_attention(lesson.batch, SLOT_LAYER + 1, GUIDED_HEAD)[
            lesson.option_slots, lesson.option_columns
        ]
        asked = found.clamp_min(LEAST_ATTENTION).log()
        return -sum((one.sum() / max(len(one), 1) for one in (asked, said, right)), torch.zeros(()))

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


def stage_at(share: float) -> Stage:
    """What is practised when this share of the rounds is done."""
    return next(stage for stage in CURRICULUM if share < stage.until)


def learning_rates_at(share: float, steps: int) -> tuple[float, float]:
    """Of what reads sentences, and of the rest, as shares of the highest: up from zero at first, then as stages say."""
    stage = stage_at(share)
    begin = max((one.until for one in CURRICULUM if one.until <= share), default=0.0)
    first, last = stage.rates
    rate = first + (last - first) * (share - begin) / (stage.until - begin)
    rate *= min(1.0, (steps + 1) / WARM_UP_STEPS)
    return rate * stage.reader_rate, rate


def count_right(logits: Tensor, lesson: Lesson) -> int:
    """Slots whose likeliest label, among those of their question, is the right one."""
    targets = [target for example in lesson.examples for target in example.targets]
    rows = zip(logits.detach(), targets, strict=True)
    return sum(int(row[list(target.label_token_ids)].argmax()) == target.right for row, target in rows)


def _slot_loss(logits: Tensor, lesson: Lesson) -> Tensor:
    """Cross-entropy over the whole vocabulary, the mean of all slots."""
    likely = logits.log_softmax(-1)[lesson.likely_slots, lesson.likely_token_ids]
    return -(likely * lesson.likely_shares).sum() / max(len(logits), 1)


def _mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy; nothing if there is nothing to know."""
    return functional.cross_entropy(logits, targets, reduction="sum") / max(len(targets), 1)


def _matrices(network: Network) -> Iterator[nn.Parameter]:
    for layer in network.layers:
        for name, parameter in layer.named_parameters():
            if parameter.ndim > 1 and name != "router":
                yield parameter
