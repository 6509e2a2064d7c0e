"""The prompt: the rubric as a system turn, the state as a user turn, in the checkpoint's own chat template.

The rubric leads, so that all requests with one rubric share a prefix and the engine's prefix cache skips it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from app.canvas.json import Json, one_line, to_text
from app.canvas.label import Label, option_line
from app.canvas.question import Kind, Question
from app.canvas.tokenizer import Tokenizer

# Raised whenever the tokens of a prompt or a canvas change for the same request: part of the fingerprint.
PROMPT_LAYOUT_VERSION = 1

TASK = "Read the conversation and answer every question with the letter of one option."
DEFAULT_TEXTS = {
    Kind.BOOLEAN: "Yes or no?",
    Kind.CHOICE: "Which one fits?",
    Kind.SCORE: "Which level fits?",
}


def rubric_text(questions: Sequence[Question], labels: Sequence[Sequence[Label]], instructions: str | None) -> str:
    """The system turn: instructions, the task, then the numbered questions with their labelled options."""
    blocks = (
        _question_text(number, question, own_labels)
        for number, (question, own_labels) in enumerate(zip(questions, labels, strict=True), start=1)
    )
    return "\n".join(filter(None, (instructions and instructions.strip() + "\n", TASK + "\n", *blocks))).rstrip()


def _question_text(number: int, question: Question, labels: Sequence[Label]) -> str:
    lines = (option_line(label.text, option.text) for label, option in zip(labels, question.options, strict=True))
    return f"{number}. {question.text or DEFAULT_TEXTS[question.kind]}\n" + "".join(lines)


def state_text(state: Json) -> str:
    """The user turn: a string without white space around it, chat messages as "role: content", anything else as JSON.

    Further lines of a message are indented, so that none can pass for a message of somebody else's.
    """
    if isinstance(state, list) and state and all(map(_is_message, state)):
        return "\n".join(f"{one_line(message['role'])}: {_indented(message['content'])}" for message in state)
    return to_text(state).strip()


def _indented(content: str) -> str:
    return "\n  ".join(content.strip().splitlines())


def _is_message(value: Json) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() == {"role", "content"}
        and all(isinstance(text, str) for text in value.values())
    )


def prompt_tokens(tokenizer: Tokenizer, rubric_token_ids: Sequence[int], state: str) -> tuple[int, ...]:
    """The whole prompt, ready for the canvas."""
    template = tokenizer.chat_template
    return tuple(chain(template.head, rubric_token_ids, template.middle, tokenizer.encode(state), template.tail))
