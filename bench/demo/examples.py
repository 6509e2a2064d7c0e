"""Samples as the service lays them out: tokens, slots, and what a reader of them should come to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TypeAlias, TypeVar

from tokenizers import Tokenizer as Backend
from tokenizers import pre_tokenizers

from app.canvas.branch import Slot
from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.prompt import state_text
from app.tokenizer import THOUGHT_OPEN
from bench.demo.planned import relabelled
from engine.demo.family import Family
from engine.demo.sample import Asked, Sample

LAYOUTS = ((Layout.JOINT, 0.6), (Layout.SPLIT, 0.15), (Layout.ISOLATED, 0.25))
ORDERS = ((Order.RUBRIC_FIRST, 0.7), (Order.STATE_FIRST, 0.3))
ABSENT = "absent"
T = TypeVar("T")
# A text of a prompt, the concept it stands for, and the label it explains if it is an option.
Sought: TypeAlias = tuple[str, int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A slot and what should be read there.

    Attributes:
        position: in the canvas.
        label_token_ids: of the slot's options, the right one at `right`; None if none is.
        concept: which value the right option stands for.
        family: whose question it is.
    """

    position: int
    label_token_ids: tuple[int, ...]
    right: int | None
    concept: int
    family: str

    @property
    def likely_token_ids(self) -> tuple[int, ...]:
        """The right label; all of them, alike, where none is right."""
        return self.label_token_ids if self.right is None else (self.label_token_ids[self.right],)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A token of an option or of a sentence where what it stands for should be known.

    Attributes:
        position: in the prompt.
        label_token_id: the option's label; None for sentences.
    """

    position: int
    concept: int
    label_token_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One canvas behind its prompt.

    Attributes:
        is_causal: whether a row of the canvas sees nothing behind it, which is a fault.
    """

    prompt_token_ids: tuple[int, ...]
    canvas_token_ids: tuple[int, ...]
    targets: tuple[Target, ...]
    marks: tuple[Mark, ...]
    is_causal: bool = False


class Concepts:
    """Every value of every family, and that nothing is said of it, by number."""

    def __init__(self, families: Sequence[Family]) -> None:
        keys = [(family.key, value) for family in families for value in (*_keys(family), ABSENT)]
        self._numbers: Mapping[tuple[str, str], int] = {key: number for number, key in enumerate(keys)}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, family: Family, value: str | None) -> int:
        """The concept of a value; None is its absence."""
        return self._numbers[family.key, value or ABSENT]


class TokenText:
    """The bytes of token sequences: where a text stands in them."""

    def __init__(self, backend: Backend) -> None:
        bytes_of = {char: byte for byte, char in enumerate_bytes()}
        added = set(backend.get_added_tokens_decoder())
        self._bytes = {
            token_id: token.encode() if token_id in added else bytes(bytes_of[char] for char in token)
            for token, token_id in backend.get_vocab().items()
        }

    def spans(self, token_ids: Sequence[int], texts: Sequence[str]) -> Iterator[range | None]:
        """Per text, the tokens that it is part of; None if it is not there."""
        pieces = [self._bytes[token_id] for token_id in token_ids]
        whole = b"".join(pieces)
        owners = [number for number, piece in enumerate(pieces) for _ in piece]
        for text in texts:
            sought = text.encode()
            at = whole.find(sought)
            yield range(owners[at], owners[at + len(sought) - 1] + 1) if at >= 0 and sought else None


def enumerate_bytes() -> Iterator[tuple[int, str]]:
    """Each byte and the character that byte-level BPE writes for it (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    for byte in range(256):
        yield byte, chr(byte if byte in shown else next(extra))


assert {char for _, char in enumerate_bytes()} == set(pre_tokenizers.ByteLevel.alphabet())


@dataclass(frozen=True)
class ExampleMaker:
    """Lays samples out with the service's own planner, with random labels and noise."""

    planner: Planner
    concepts: Concepts
    text: TokenText

    def examples(self, random: Random, sample: Sample, relabelled_share: float = 0.0) -> list[Example]:
        """One example per canvas; one without a canvas if nothing is asked.

        Args:
            relabelled_share: how often labels are in another order than the service's, so that they mean what the
                prompt says.
        """
        if not sample.asked:
            return [self._statements(sample)]
        layout, order = _draw(random, LAYOUTS), _draw(random, ORDERS)
        planner = relabelled(self.planner, random) if random.random() < relabelled_share else self.planner
        plan = planner.plan(sample.rubric, layout=layout, order=order)
        state = state_text(sample.state)
        read = planner.seed_read(plan, state, random.getrandbits(53))
        found = []
        for branch, canvas in zip(plan.branches, read.canvases, strict=True):
            prompt = (*read.prompt_token_ids, *branch.suffix_token_ids)
            shown = {slot.question for slot in branch.slots} if layout is Layout.ISOLATED else range(len(sample.asked))
            found.append(
                Example(
                    prompt_token_ids=prompt,
                    canvas_token_ids=canvas,
                    targets=tuple(self._target(sample.asked[slot.question], slot) for slot in branch.slots),
                    marks=tuple(self._marks(prompt, sample, plan, shown)),
                )
            )
        return found

    @cached_property
    def thought_tokens(self) -> int:
        """How many tokens at the end of every prompt are an empty thought."""
        tokenizer = self.planner.tokenizer
        tail = tokenizer.chat_template.tail
        starts = (count for count in range(1, len(tail)) if tokenizer.decode(tail[-count:]).startswith(THOUGHT_OPEN))
        return next(starts, 0)

    def _statements(self, sample: Sample) -> Example:
        prompt = tuple(self.planner.tokenizer.encode(state_text(sample.state)))
        marks = tuple(self._placed(prompt, self._sentences(sample)))
        return Example(prompt_token_ids=prompt, canvas_token_ids=(), targets=(), marks=marks)

    def _target(self, asked: Asked, slot: Slot) -> Target:
        right = _right_option(asked, slot.line)
        value = _concept_value(asked, slot.line, right)
        return Target(
            position=slot.position,
            label_token_ids=slot.label_token_ids,
            right=right,
            concept=self.concepts.number(asked.family, value),
            family=asked.family.key,
        )

    def _marks(self, prompt: Sequence[int], sample: Sample, plan: Plan, shown: Iterable[int]) -> Iterator[Mark]:
        sought = self._sentences(sample)
        for index in shown:
            asked, question, labels = sample.asked[index], plan.questions[index], plan.labels[index]
            if isinstance(asked.answer, list):
                continue
            for option, label, value in zip(question.options, labels, asked.values, strict=True):
                concept = self.concepts.number(asked.family, value)
                sought.append((f"- {label.text} = {option.text}", concept, label.token_id))
        return self._placed(prompt, sought)

    def _sentences(self, sample: Sample) -> list[Sought]:
        return [
            (one.text.rstrip(".,;")[1:], self.concepts.number(one.family, one.value.key), None) for one in sample.stated
        ]

    def _placed(self, prompt: Sequence[int], sought: Sequence[Sought]) -> Iterator[Mark]:
        spans = self.text.spans(prompt, [text for text, _, _ in sought])
        for span, (_, concept, label_token_id) in zip(spans, sought, strict=True):
            if span is not None:
                yield Mark(position=span[-1], concept=concept, label_token_id=label_token_id)


def _concept_value(asked: Asked, line: int, right: int | None) -> str | None:
    """What a line's slot says of the message; None is that nothing is said."""
    if isinstance(asked.answer, list):
        return asked.values[line] if right == 0 else None
    return None if right is None else asked.values[right]


def _right_option(asked: Asked, line: int) -> int | None:
    """Which option of a line's slot is right."""
    schema, answer = asked.schema, asked.answer
    if answer is None:
        return None
    if isinstance(answer, list):
        return 0 if schema["items"]["enum"][line] in answer else 1
    if isinstance(answer, bool):
        return 0 if answer else 1
    if isinstance(answer, int):
        return answer - int(schema["minimum"])
    options = schema.get("enum") or [option["const"] for option in schema["oneOf"]]
    return options.index(answer)


def _draw(random: Random, choices: Sequence[tuple[T, float]]) -> T:
    return random.choices([choice for choice, _ in choices], [weight for _, weight in choices])[0]


def _keys(family: Family) -> Iterator[str]:
    return (value.key for value in family.values)
