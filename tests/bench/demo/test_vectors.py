"""Word vectors become rows of tokens."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import torch

from bench.demo.vectors import DIMENSIONS, WordVectors, read_vectors, token_vectors, vocabulary_words
from bench.demo.vocabulary import train_tokenizer

WORDS = ("pain", "ache", "invoice", "bill", "refill", "refills")


@pytest.fixture
def vectors() -> WordVectors:
    """Unit vectors of six words: the second of each pair nearly the first."""
    generator = torch.Generator().manual_seed(1)
    firsts = torch.randn(3, DIMENSIONS, generator=generator)
    seconds = firsts + 0.3 * torch.randn(3, DIMENSIONS, generator=generator)
    values = torch.stack((firsts, seconds), dim=1).flatten(0, 1)
    return WordVectors(words=WORDS, values=values / values.norm(dim=1, keepdim=True))


def test_the_packages_file(tmp_path: Path) -> None:
    """Its most frequent words, each of length 1, without what all have in common."""
    random = Random(1)
    raw = {f"w{n}": [5.0 + random.gauss(0, 1) for _ in range(DIMENSIONS)] + [1.0, n] for n in range(300)}
    file = tmp_path / "vectors.json"
    file.write_text(json.dumps({"size": 300, "words": list(raw), "vectors": raw}, separators=(",", ":")))
    found = read_vectors(file, 200)
    assert found.words == tuple(f"w{n}" for n in range(200))
    assert torch.allclose(found.values.norm(dim=1), torch.ones(200))
    assert found.values.mean(0).norm() < 0.2


def test_tokens_have_the_vectors_of_their_words(vectors: WordVectors) -> None:
    """A whole word's its own, however it is written; a part's those of the words it is in; a label's none."""
    tokenizer = train_tokenizer(["no pain", "an ache"], ["pain", "invoice", "refill"])
    found = token_vectors(tokenizer, vectors)
    assert found.shape == (tokenizer.get_vocab_size(), DIMENSIONS)
    (pain,) = tokenizer.encode(" pain").ids
    assert torch.allclose(found[pain], vectors.values[0], atol=0.02)
    refill, rest = tokenizer.encode(" refills").ids
    assert found[refill] @ vectors.values[4] > 0.9
    assert found[rest] @ vectors.values[5] > 0.9
    assert not found[tokenizer.token_to_id("<bos>")].any()


def test_words_beside_the_texts_own(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most frequent ones, and those that mean nearly the same as a word of the texts."""
    monkeypatch.setattr("bench.demo.vectors.FREQUENT_WORDS", 1)
    monkeypatch.setattr("bench.demo.vectors.NEIGHBOURS", 1)
    assert vocabulary_words(vectors, ["The INVOICE"]) == ["pain", "invoice", "bill"]
