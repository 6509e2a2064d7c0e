"""The prompt: a rubric's questions and a state, in the checkpoint's own chat template.

A prompt is what stands before the state, the state, and what stands after it. What comes first can be shared: with the
rubric ahead, all requests with one rubric share a prefix that the engine's prefix cache skips; with the state ahead,
all rubrics about one state do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.canvas.json import Json, one_line, to_text
from app.canvas.label import Label
from app.canvas.question import Question
from app.canvas.tokenizer import Tokenizer

# Raised whenever the tokens of a prompt or a canvas change for the same request: part of the fingerprint.
PROMPT_LAYOUT_VERSION = 2

TASK = "Read the conversation and answer every question with the letter of one option."


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFrame:
    """The tokens around a state.

    Attributes:
        before, after: of the shared prompt.
        suffixes: what each question adds behind it, where questions are read apart from each other; else none.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    suffixes: tuple[tuple[int, ...], ...] = ()

    def around(self, state_token_ids: Sequence[int]) -> tuple[int, ...]:
        """The shared prompt of a state."""
        return (*self.before, *state_token_ids, *self.after)


def rubric_first(tokenizer: Tokenizer, preface: str, questions: str) -> PromptFrame:
    """System turn: preface, task, questions. User turn: the state."""
    return PromptFrame(before=_head(tokenizer, preface, TASK, questions), after=tokenizer.chat_template.tail)


def state_first(tokenizer: Tokenizer, preface: str, questions: str) -> PromptFrame:
    """System turn: the task. User turn: the state, preface, questions."""
    after = tokenizer.encode("\n\n" + _paragraphs(preface, questions))
    return PromptFrame(before=_head(tokenizer, TASK), after=(*after, *tokenizer.chat_template.tail))


def isolated(tokenizer: Tokenizer, preface: str, questions: Sequence[str], *, is_state_first: bool) -> PromptFrame:
    """The state ahead, and behind it one question at a time; the preface leads the system turn or each question."""
    before = _head(tokenizer, TASK) if is_state_first else _head(tokenizer, preface, TASK)
    repeated = tokenizer.encode("\n\n" + preface) if is_state_first and preface else ()
    tail = tokenizer.chat_template.tail
    suffixes = tuple((*repeated, *tokenizer.encode("\n\n" + question), *tail) for question in questions)
    return PromptFrame(before=before, after=(), suffixes=suffixes)


def preface_text(instructions: str | None, description: str) -> str:
    """What leads the questions: the request's instructions, then what the rubric says of itself."""
    return _paragraphs((instructions or "").strip(), description)


def first_lines(questions: Sequence[Question]) -> tuple[int, ...]:
    """The number of each question's first line, from 1."""
    return tuple(accumulate((question.lines for question in questions), initial=1))[:-1]


def questions_text(questions: Sequence[Question], labels: Sequence[Sequence[Label]], rotation: int = 0) -> str:
    """The numbered questions with their labelled options, each question's from one of them on, and round."""
    asked = zip(questions, first_lines(questions), labels, strict=True)
    return "\n".join(question.prompt(number, own_labels, rotation) for question, number, own_labels in asked).rstrip()


def state_text(state: Json) -> str:
    """The state: a string without white space around it, chat messages as "role: content", anything else as JSON.

    Further lines of a message are indented, so that none can pass for a message of somebody else's.
    """
    if isinstance(state, list) and state and all(map(_is_message, state)):
        return "\n".join(f"{one_line(message['role'])}: {_indented(message['content'])}" for message in state)
    return to_text(state).strip()


def _head(tokenizer: Tokenizer, *paragraphs: str) -> tuple[int, ...]:
    template = tokenizer.chat_template
    return (*template.head, *tokenizer.encode(_paragraphs(*paragraphs)), *template.middle)


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _indented(content: str) -> str:
    return "\n  ".join(content.strip().splitlines())


def _is_message(value: Json) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() == {"role", "content"}
        and all(isinstance(text, str) for text in value.values())
    )
