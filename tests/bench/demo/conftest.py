"""What training is tested with: all families, and samples laid out with the demo's tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
import torch

from app.canvas.plan import Planner
from app.tokenizer import CheckpointTokenizer
from bench.demo.examples import Concepts, Example, ExampleMaker, TokenText
from bench.demo.network import Network, NetworkSizes
from engine.demo.family import Family, Split, load_families
from engine.demo.sample import Sampler


@pytest.fixture(scope="session")
def families() -> tuple[Family, ...]:
    """All of them."""
    return load_families()


@pytest.fixture(scope="session")
def maker(planner: Planner, tokenizer: CheckpointTokenizer, families: tuple[Family, ...]) -> ExampleMaker:
    """Lays samples out with the demo's tokenizer."""
    return ExampleMaker(planner, Concepts(families), TokenText(tokenizer._template))


@pytest.fixture(scope="session")
def examples(maker: ExampleMaker, families: tuple[Family, ...]) -> list[Example]:
    """Those of a hundred samples."""
    sampler, random = Sampler(families, Split.TRAINED), Random(4)
    return [example for _ in range(100) for example in maker.examples(random, sampler.sample(random))]


@pytest.fixture(scope="session")
def make_network(tokenizer: CheckpointTokenizer) -> Callable[[], Network]:
    """Makes a small network, the same every time."""

    def make() -> Network:
        torch.manual_seed(1)
        return Network(
            NetworkSizes(
                vocabulary=tokenizer.vocabulary_size, hidden=32, layers=4, heads=2, kv_heads=1, head=16, mlp=32
            )
        )

    return make
