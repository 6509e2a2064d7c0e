"""Examples of similar length, padded into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.demo.examples import Example, Target
from bench.demo.network import Batch

# Padding is computed too, so this many tokens of a batch cost about the same whatever their shape.
BATCH_TOKENS = 1536


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A batch and what should be known at its slots and marks.

    Attributes:
        concepts: [slots], what the right label stands for.
        likely_slots, likely_token_ids, likely_shares: [likely], labels that should be read at slots, and how likely.
        asked_slots, asked_columns: [asked], where the options of slots' own questions stand.
        sentence_slots, sentence_columns: [sentences], where slots find said what they ask about.
        option_slots, option_columns: [options], where slots find the right option.
        mark_reads, mark_columns, mark_concepts, mark_labels: [marks]; a label is -1 where there is none.
    """

    batch: Batch
    concepts: Tensor
    likely_slots: Tensor
    likely_token_ids: Tensor
    likely_shares: Tensor
    asked_slots: Tensor
    asked_columns: Tensor
    sentence_slots: Tensor
    sentence_columns: Tensor
    option_slots: Tensor
    option_columns: Tensor
    mark_reads: Tensor
    mark_columns: Tensor
    mark_concepts: Tensor
    mark_labels: Tensor
    examples: tuple[Example, ...]


def lessons(examples: Sequence[Example]) -> Iterator[Lesson]:
    """All examples, those of similar length together, and those without a question by themselves."""
    group: list[Example] = []
    longest = 0
    for example in sorted(examples, key=lambda one: (bool(one.targets), len(one.prompt_token_ids))):
        if group and bool(group[0].targets) != bool(example.targets):
            yield lesson(group)
            group = []
        longest = len(example.prompt_token_ids) + 64
        if group and longest * (len(group) + 1) > BATCH_TOKENS:
            yield lesson(group)
            group = []
        group.append(example)
    if group:
        yield lesson(group)


def lesson(examples: Sequence[Example]) -> Lesson:
    """These examples side by side."""
    prompts = [len(one.prompt_token_ids) for one in examples]
    canvases = [len(one.canvas_token_ids) for one in examples]
    width, total = max(prompts), max(prompts) + max(canvases)
    ids, positions = (
        torch.zeros(len(examples), total, dtype=torch.long),
        torch.zeros(len(examples), total, dtype=torch.long),
    )
    for row, one in enumerate(examples):
        ids[row, : prompts[row]] = torch.tensor(one.prompt_token_ids)
        ids[row, width : width + canvases[row]] = torch.tensor(one.canvas_token_ids)
        positions[row, :width] = torch.arange(width)
        positions[row, width:] = prompts[row] + torch.arange(total - width)
    slots = [(row, width + target.position, target) for row, one in enumerate(examples) for target in one.targets]
    marks = [(row, mark.position, mark) for row, one in enumerate(examples) for mark in one.marks]
    likely = [
        (slot, token_id, 1 / len(target.likely_token_ids))
        for slot, (_, _, target) in enumerate(slots)
        for token_id in target.likely_token_ids
    ]
    asked = [(slot, column) for slot, (row, _, target) in enumerate(slots) for column in _asked(examples[row], target)]
    sentences = [
        (slot, column) for slot, (row, _, target) in enumerate(slots) for column in _said(examples[row], target)
    ]
    options = [
        (slot, column) for slot, (row, _, target) in enumerate(slots) for column in _right(examples[row], target)
    ]
    batch = Batch(
        token_ids=ids,
        positions=positions,
        prompt_tokens=torch.tensor(prompts),
        canvas_tokens=torch.tensor(canvases),
        prompt_width=width,
        slot_reads=_numbers(row for row, _, _ in slots),
        slot_columns=_numbers(column for _, column, _ in slots),
        is_causal=torch.tensor([one.is_causal for one in examples]),
    )
    return Lesson(
        batch=batch,
        concepts=_numbers(target.concept for _, _, target in slots),
        likely_slots=_numbers(slot for slot, _, _ in likely),
        likely_token_ids=_numbers(token_id for _, token_id, _ in likely),
        likely_shares=torch.tensor([share for _, _, share in likely], dtype=torch.float32),
        asked_slots=_numbers(slot for slot, _ in asked),
        asked_columns=_numbers(column for _, column in asked),
        sentence_slots=_numbers(slot for slot, _ in sentences),
        sentence_columns=_numbers(column for _, column in sentences),
        option_slots=_numbers(slot for slot, _ in options),
        option_columns=_numbers(column for _, column in options),
        mark_reads=_numbers(row for row, _, _ in marks),
        mark_columns=_numbers(column for _, column, _ in marks),
        mark_concepts=_numbers(mark.concept for _, _, mark in marks),
        mark_labels=_numbers(-1 if mark.label_token_id is None else mark.label_token_id for _, _, mark in marks),
        examples=tuple(examples),
    )


def _asked(example: Example, target: Target) -> Iterator[int]:
    """Where an example explains the labels of a target's question."""
    for mark in example.marks:
        if mark.label_token_id in target.label_token_ids:
            yield mark.position


def _said(example: Example, target: Target) -> Iterator[int]:
    """Where an example says what a target is about."""
    if target.right is not None:
        for mark in example.marks:
            if mark.label_token_id is None and mark.concept == target.concept:
                yield mark.position


def _right(example: Example, target: Target) -> Iterator[int]:
    """Where an example explains a target's right label."""
    if target.right is not None:
        right = (target.concept, target.label_token_ids[target.right])
        for mark in example.marks:
            if (mark.concept, mark.label_token_id) == right:
                yield mark.position


def _numbers(values: Iterable[int]) -> Tensor:
    return torch.tensor(list(values), dtype=torch.long)
