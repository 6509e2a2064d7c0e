"""Examples of similar length, padded into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.demo.examples import Example
from bench.demo.network import Batch

# Padding is computed too, so this many tokens of a batch cost about the same whatever their shape.
BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A batch and what should be known at its slots and marks.

    Attributes:
        targets, concepts: [slots], the right label's token id and what it stands for.
        mark_reads, mark_columns, mark_concepts, mark_labels: [marks]; a label is -1 where there is none.
    """

    batch: Batch
    targets: Tensor
    concepts: Tensor
    mark_reads: Tensor
    mark_columns: Tensor
    mark_concepts: Tensor
    mark_labels: Tensor
    examples: tuple[Example, ...]


def lessons(examples: Sequence[Example]) -> Iterator[Lesson]:
    """All examples, those of similar length together."""
    group: list[Example] = []
    longest = 0
    for example in sorted(examples, key=lambda one: len(one.prompt_token_ids)):
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
    batch = Batch(
        token_ids=ids,
        positions=positions,
        prompt_tokens=torch.tensor(prompts),
        canvas_tokens=torch.tensor(canvases),
        prompt_width=width,
        slot_reads=torch.tensor([row for row, _, _ in slots]),
        slot_columns=torch.tensor([column for _, column, _ in slots]),
    )
    return Lesson(
        batch=batch,
        targets=torch.tensor([target.token_id for _, _, target in slots]),
        concepts=torch.tensor([target.concept for _, _, target in slots]),
        mark_reads=torch.tensor([row for row, _, _ in marks], dtype=torch.long),
        mark_columns=torch.tensor([column for _, column, _ in marks], dtype=torch.long),
        mark_concepts=torch.tensor([mark.concept for _, _, mark in marks], dtype=torch.long),
        mark_labels=torch.tensor([-1 if mark.label_token_id is None else mark.label_token_id for _, _, mark in marks]),
        examples=tuple(examples),
    )
