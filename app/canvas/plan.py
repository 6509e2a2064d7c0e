"""A plan: everything about a request that depends on its rubric alone, ready to meet a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from jsonschema import Draft202012Validator

from app.canvas.decision import make_validator
from app.canvas.errors import PromptTooLong
from app.canvas.json import Json
from app.canvas.label import Label, assign_labels, find_labels
from app.canvas.layout import CanvasTemplate, build_canvas, count_questions_that_fit
from app.canvas.noise import seed_of
from app.canvas.prompt import prompt_tokens, rubric_text
from app.canvas.question import Question
from app.canvas.rubric import RubricLimits, compile_rubric
from app.canvas.tokenizer import Tokenizer

# The language's own bounds; a tokenizer or a canvas may set narrower ones.
MAX_QUESTIONS = 64
MAX_OPTIONS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A rubric laid out.

    Attributes:
        labels: per question, the label of each option.
        canvas: the template all reads share.
        rubric_token_ids: the system turn.
        validator: checks decisions against what was understood of the rubric.
    """

    questions: tuple[Question, ...]
    labels: tuple[tuple[Label, ...], ...]
    canvas: CanvasTemplate
    rubric_token_ids: tuple[int, ...]
    validator: Draft202012Validator


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRead:
    """A prompt and a canvas with its noise, ready to be read."""

    prompt_token_ids: tuple[int, ...]
    canvas_token_ids: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Planner:
    """Makes plans for one tokenizer and one engine's limits.

    Attributes:
        max_model_len: prompt plus canvas, in tokens.
        canvas_length: widest canvas, in tokens.
        max_text_chars: longest single text of a rubric.
    """

    tokenizer: Tokenizer
    max_model_len: int
    canvas_length: int
    max_text_chars: int

    @cached_property
    def alphabet(self) -> tuple[Label, ...]:
        """The labels of this tokenizer."""
        return find_labels(self.tokenizer)

    @cached_property
    def limits(self) -> RubricLimits:
        """What a rubric may hold here."""
        return RubricLimits(
            max_questions=count_questions_that_fit(self.tokenizer, self.alphabet, self.canvas_length, MAX_QUESTIONS),
            max_options=min(MAX_OPTIONS, len(self.alphabet)),
            max_text_chars=self.max_text_chars,
        )

    @cached_property
    def _canvases(self) -> dict[int, CanvasTemplate]:
        # At most `limits.max_questions` entries.
        return {}

    def plan(self, rubric: Json, instructions: str | None) -> Plan:
        """Understand and lay out a rubric.

        Raises:
            RubricRejected: with every problem.
            PromptTooLong: no state would fit beside it.
        """
        compiled = compile_rubric(rubric, self.limits)
        labels = assign_labels(self.alphabet, [len(question.options) for question in compiled.questions])
        rubric_token_ids = tuple(self.tokenizer.encode(rubric_text(compiled.questions, labels, instructions)))
        canvas = self._canvas(len(compiled.questions))
        without_state = len(prompt_tokens(self.tokenizer, rubric_token_ids, ""))
        self._check_length("/rubric", without_state + canvas.width)
        return Plan(
            questions=compiled.questions,
            labels=labels,
            canvas=canvas,
            rubric_token_ids=rubric_token_ids,
            validator=make_validator(compiled.schema),
        )

    def seed_read(self, plan: Plan, state_text: str, seed: int | None) -> SeededRead:
        """Lay a state's text out under a plan and draw the canvas's noise.

        Raises:
            PromptTooLong: prompt and canvas do not fit the context.
        """
        prompt = prompt_tokens(self.tokenizer, plan.rubric_token_ids, state_text)
        self._check_length("/state", len(prompt) + plan.canvas.width)
        seed = seed_of(prompt) if seed is None else seed
        canvas = plan.canvas.with_noise(seed, self.tokenizer.vocabulary_size)
        return SeededRead(prompt_token_ids=prompt, canvas_token_ids=canvas, seed=seed)

    def _check_length(self, pointer: str, tokens: int) -> None:
        if tokens > self.max_model_len:
            raise PromptTooLong(pointer, tokens, self.max_model_len)

    def _canvas(self, questions: int) -> CanvasTemplate:
        if questions not in self._canvases:
            self._canvases[questions] = build_canvas(self.tokenizer, self.alphabet, questions)
        return self._canvases[questions]


def label_token_ids(labels: Sequence[Label]) -> tuple[int, ...]:
    """Token ids of one question's labels, in option order."""
    return tuple(label.token_id for label in labels)
