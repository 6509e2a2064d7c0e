"""A plan: everything about a request that depends on its rubric alone, ready to meet a state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from math import lcm
from typing import TypeVar

from jsonschema import Draft202012Validator

from app.canvas.branch import PlannedBranch, collect, plan_branches
from app.canvas.condition import make_validator
from app.canvas.errors import PlanTooLarge, PromptTooLong
from app.canvas.json import Json
from app.canvas.label import Label, assign_labels, find_labels, rotate_labels
from app.canvas.layout import fill_canvases
from app.canvas.noise import seed_of
from app.canvas.prompt import (
    PromptFrame,
    first_lines,
    isolated,
    preface_text,
    questions_text,
    rubric_first,
    state_first,
)
from app.canvas.question import Question
from app.canvas.rubric import Rubric, compile_rubric
from app.canvas.site import RubricLimits
from app.canvas.tokenizer import Tokenizer

# The widest line: no rubric of the language has more.
LAST_LINE = 64 * 255
T = TypeVar("T")
# Of one question, per line, the logprob of each option.
LineLogprobs = tuple[tuple[float, ...], ...]


class Layout(StrEnum):
    """Which questions share a canvas.

    JOINT: all. SPLIT: none, after the same prompt. ISOLATED: none, and none sees another's text.
    """

    JOINT = "joint"
    SPLIT = "split"
    ISOLATED = "isolated"


class Order(StrEnum):
    """What leads the prompt, and so what requests can share."""

    RUBRIC_FIRST = "rubric_first"
    STATE_FIRST = "state_first"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A rubric laid out.

    Attributes:
        labels: per question, the label of each of `slot_options`.
        frame: the prompt but for the state.
        layout: which questions share a canvas.
        branches: what is read, one engine step where they fit.
        validator: checks decisions against what was understood of the rubric.
    """

    rubric: Rubric
    labels: tuple[tuple[Label, ...], ...]
    frame: PromptFrame
    layout: Layout
    branches: tuple[PlannedBranch, ...]
    validator: Draft202012Validator

    @property
    def questions(self) -> tuple[Question, ...]:
        """In the rubric's order."""
        return self.rubric.questions

    @cached_property
    def is_in_parts(self) -> bool:
        """Whether a slot is read in more than one branch: then logprobs have to be comparable between branches."""
        return any(len(slot.options) < len(self.labels[slot.question]) for b in self.branches for slot in b.slots)

    @cached_property
    def orders(self) -> int:
        """After so many rotations every question's options are in their first order again."""
        return lcm(*(len(question.slot_options) for question in self.questions))

    @cached_property
    def widest_tokens(self) -> int:
        """What the largest branch adds to the shared prompt."""
        return max(branch.tokens for branch in self.branches)

    def branches_of(self, questions: Collection[int]) -> tuple[PlannedBranch, ...]:
        """The branches that read these questions; where questions share canvases, all, for they were read together."""
        if self.layout is Layout.JOINT:
            return self.branches
        return tuple(branch for branch in self.branches if branch.slots[0].question in questions)

    def collect(
        self, branches: Sequence[PlannedBranch], branch_logprobs: Sequence[Sequence[Sequence[float]]]
    ) -> dict[int, LineLogprobs]:
        """What the engine reports of some branches, by the questions that they read, in order."""
        read = sorted({slot.question for branch in branches for slot in branch.slots})
        sizes = {index: (self.questions[index].lines, len(self.questions[index].slot_options)) for index in read}
        return collect(branches, branch_logprobs, sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRead:
    """A prompt and the canvases behind it, with their noise, ready to be read.

    Attributes:
        branches: what is read, of the first seed, then of the next.
        canvases: of each branch.
        seeds: of each draw.
    """

    prompt_token_ids: tuple[int, ...]
    branches: tuple[PlannedBranch, ...]
    canvases: tuple[tuple[int, ...], ...]
    seeds: tuple[int, ...]

    def by_seed(self, branch_logprobs: Sequence[T]) -> Iterator[tuple[Sequence[PlannedBranch], Sequence[T]]]:
        """What was read of each seed: the branches, and what the engine reports of them."""
        size = len(self.branches) // len(self.seeds)
        for start in range(0, len(self.branches), size):
            yield self.branches[start : start + size], branch_logprobs[start : start + size]


@dataclass(frozen=True)
class Planner:
    """Makes plans for one tokenizer and one engine's limits.

    Attributes:
        max_model_len: prompt plus canvas, in tokens.
        canvas_length: widest canvas, in tokens.
        max_branch_tokens: suffixes and canvases of a request together.
        rubric_limits: how large a rubric may be; see `limits`.
    """

    tokenizer: Tokenizer
    max_model_len: int
    canvas_length: int
    max_branch_tokens: int
    rubric_limits: RubricLimits

    @cached_property
    def alphabet(self) -> tuple[Label, ...]:
        """The labels of this tokenizer."""
        return find_labels(self.tokenizer)

    @cached_property
    def limits(self) -> RubricLimits:
        """How large a rubric may be here: a slot has no more options than this tokenizer has labels.

        Raises:
            UnfitTokenizer: this tokenizer cannot spell a canvas as wide as is served.
        """
        tuple(fill_canvases(self.tokenizer, self.alphabet, LAST_LINE, 1, self.canvas_length))
        return replace(self.rubric_limits, max_labels=len(self.alphabet))

    def prepare(self) -> None:
        """Find labels and limits now, not at the first request.

        Raises:
            UnfitTokenizer: see `limits`.
        """
        _ = self.limits

    def plan(
        self,
        schema: Json,
        instructions: str | None = None,
        *,
        layout: Layout = Layout.JOINT,
        order: Order = Order.RUBRIC_FIRST,
        rotation: int = 0,
    ) -> Plan:
        """Understand and lay out a rubric; the first label stands for the first option, or for one so far behind it.

        Raises:
            RubricRejected: with every problem.
            PromptTooLong: no state would fit beside it.
            PlanTooLarge: it takes too much reading.
        """
        rubric = compile_rubric(schema, self.limits)
        labels = tuple(rotate_labels(own, rotation) for own in self._labels(rubric.questions, layout))
        frame = self._frame(rubric, labels, preface_text(instructions, rubric.description), layout, order, rotation)
        # Ahead of the canvases: there is no end to what a rubric without a fitting prompt might ask for.
        longest_suffix = max(map(len, frame.suffixes), default=0)
        self._check_length("/rubric", len(frame.around(())) + longest_suffix)
        branches = tuple(self._within_bounds(self._branches(rubric.questions, labels, frame, layout)))
        plan = Plan(
            rubric=rubric,
            labels=labels,
            frame=frame,
            layout=layout,
            branches=branches,
            validator=make_validator(rubric.schema),
        )
        self._check_length("/rubric", len(frame.around(())) + plan.widest_tokens)
        return plan

    def seed_read(self, plan: Plan, state_text: str, seed: int | None) -> SeededRead:
        """Lay a state's text out under a plan and draw the noise of its canvases once.

        Raises:
            PromptTooLong: prompt and canvas do not fit the context.
        """
        prompt = self.prompt(plan, state_text)
        return self.draw(plan.branches, prompt, (seed_of(prompt) if seed is None else seed,))

    def prompt(self, plan: Plan, state_text: str) -> tuple[int, ...]:
        """The prompt of a state's text under a plan, in tokens.

        Raises:
            PromptTooLong: prompt and canvas do not fit the context.
        """
        # Ahead of tokenising it: that takes as long as the text is, however little of it would fit.
        self._check_length("/state", len(state_text) // self.tokenizer.longest_token_bytes)
        prompt = plan.frame.around(self.tokenizer.encode(state_text))
        self._check_length("/state", len(prompt) + plan.widest_tokens)
        return prompt

    def draw(
        self, branches: Sequence[PlannedBranch], prompt_token_ids: tuple[int, ...], seeds: Sequence[int]
    ) -> SeededRead:
        """Draw the noise of these branches, once per seed.

        Every canvas draws from the start of the seed's stream: what is read beside it does not move its noise.
        """
        size = self.tokenizer.vocabulary_size
        return SeededRead(
            prompt_token_ids=prompt_token_ids,
            branches=(*branches,) * len(seeds),
            canvases=tuple(branch.canvas.with_noise(seed, size) for seed in seeds for branch in branches),
            seeds=tuple(seeds),
        )

    def _labels(self, questions: Sequence[Question], layout: Layout) -> tuple[tuple[Label, ...], ...]:
        counts = [len(question.slot_options) for question in questions]
        if layout is Layout.ISOLATED:  # nothing that a question sees may depend on the others
            return tuple(labels for count in counts for labels in assign_labels(self.alphabet, [count]))
        return assign_labels(self.alphabet, counts)

    def _frame(
        self,
        rubric: Rubric,
        labels: Sequence[Sequence[Label]],
        preface: str,
        layout: Layout,
        order: Order,
        rotation: int,
    ) -> PromptFrame:
        if layout is Layout.ISOLATED:
            alone = zip(rubric.questions, labels, strict=True)
            texts = [questions_text([question], [own], rotation) for question, own in alone]
            is_state_first = order is Order.STATE_FIRST
            repeated_chars = len(texts) * len(preface) if is_state_first else 0
            if repeated_chars > self.max_branch_tokens * self.tokenizer.longest_token_bytes:
                raise PlanTooLarge(self.max_branch_tokens)
            return isolated(self.tokenizer, preface, texts, is_state_first=is_state_first)
        lay = state_first if order is Order.STATE_FIRST else rubric_first
        return lay(self.tokenizer, preface, questions_text(rubric.questions, labels, rotation))

    def _branches(
        self, questions: Sequence[Question], labels: Sequence[Sequence[Label]], frame: PromptFrame, layout: Layout
    ) -> Iterator[PlannedBranch]:
        """The canvases of each group of questions that share one."""
        lines = [[(index, line) for line in range(question.lines)] for index, question in enumerate(questions)]
        if layout is Layout.JOINT:
            yield from self._canvases([line for own in lines for line in own], labels, 1, ())
            return
        for own, first, suffix in zip(lines, first_lines(questions), frame.suffixes or repeat(()), strict=False):
            yield from self._canvases(own, labels, 1 if layout is Layout.ISOLATED else first, suffix)

    def _within_bounds(self, branches: Iterator[PlannedBranch]) -> Iterator[PlannedBranch]:
        """The branches, as long as they are not too many: isolated questions repeat what stands around them."""
        tokens = 0
        for branch in branches:
            tokens += branch.tokens
            if tokens > self.max_branch_tokens:
                raise PlanTooLarge(self.max_branch_tokens)
            yield branch

    def _canvases(
        self,
        lines: Sequence[tuple[int, int]],
        labels: Sequence[Sequence[Label]],
        first: int,
        suffix_token_ids: tuple[int, ...],
    ) -> Iterator[PlannedBranch]:
        canvases = tuple(fill_canvases(self.tokenizer, self.alphabet, first, len(lines), self.canvas_length))
        return plan_branches(canvases, lines, labels, suffix_token_ids)

    def _check_length(self, pointer: str, tokens: int) -> None:
        if tokens > self.max_model_len:
            raise PromptTooLong(pointer, tokens, self.max_model_len)
