"""What an independent model says about a request's prompt and canvases, per question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.canvas.plan import Layout, Order, Plan, Planner, SeededRead
from app.canvas.prompt import state_text
from app.canvas.question import Kind, Question
from tests.reference import HuggingFaceReference

# Per question's id, the probability of each option.
Answers = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Planned:
    """A request as the service lays it out: where an independent model takes its tokens from."""

    plan: Plan
    read: SeededRead

    @classmethod
    def of(cls, planner: Planner, request: dict[str, Any]) -> Planned:
        """Lay out a request."""
        policy = request.get("policy", {})
        plan = planner.plan(
            request["rubric"],
            request.get("instructions"),
            layout=Layout(policy.get("layout", "joint")),
            order=Order(policy.get("order", "rubric_first")),
        )
        return cls(plan, planner.seed_read(plan, state_text(request["state"]), policy.get("seed")))

    @property
    def prompt(self) -> tuple[int, ...]:
        """The tokens that all branches share."""
        return self.read.prompt_token_ids

    @property
    def suffixes(self) -> list[tuple[int, ...]]:
        """What each branch adds to them."""
        return [branch.suffix_token_ids for branch in self.plan.branches]


@dataclass(frozen=True)
class ExpectedAnswers:
    """Hugging Face's model behind the planner of one server, each branch read on its own.

    Beyond the sliding window it gets vLLM's mask, see `tests.reference`; up to there it needs none.
    """

    reference: HuggingFaceReference
    planner: Planner

    def __call__(self, request: dict[str, Any]) -> Answers:
        """What `probabilities` should be.

        A slot is normalised over all the labels of its question at once, in however many reads the service takes them.
        """
        planned = Planned.of(self.planner, request)
        found: dict[tuple[int, int], NDArray[np.float64]] = {}
        for branch, canvas in zip(planned.plan.branches, planned.read.canvases, strict=True):
            slots = [slot for slot in branch.slots if (slot.question, slot.line) not in found]
            if not slots:
                continue  # another part of slots that are known as a whole
            logits = self._logits((*planned.prompt, *branch.suffix_token_ids), canvas)
            for slot in slots:
                labels = [label.token_id for label in planned.plan.labels[slot.question]]
                found[slot.question, slot.line] = _softmax(logits[slot.position, labels].astype(np.float64))
        return {
            question.id: _by_option(question, [found[index, line] for line in range(question.lines)])
            for index, question in enumerate(planned.plan.questions)
        }

    def label_mass(self, request: dict[str, Any]) -> dict[str, float]:
        """What the labels of each question have of the whole vocabulary, of the line where that is least."""
        planned = Planned.of(self.planner, request)
        found: dict[str, float] = {}
        for branch, canvas in zip(planned.plan.branches, planned.read.canvases, strict=True):
            logits = self._logits((*planned.prompt, *branch.suffix_token_ids), canvas).astype(np.float64)
            for slot in branch.slots:
                mass = float(_softmax(logits[slot.position])[list(slot.label_token_ids)].sum())
                id_ = planned.plan.questions[slot.question].id
                found[id_] = min(mass, found.get(id_, 1.0))
        return found

    def _logits(self, prompt: tuple[int, ...], canvas: tuple[int, ...]) -> NDArray[np.float32]:
        window = self.reference.model.config.get_text_config().sliding_window
        is_long = len(prompt) + len(canvas) > window
        return self.reference.slot_logits(prompt, canvas, window_each_row=is_long)


def distance(answers: Answers, expected: Answers) -> float:
    """How far the logarithms of probabilities are apart at most: so it counts for unlikely options too."""
    assert [list(options) for options in answers.values()] == [list(options) for options in expected.values()]
    pairs = zip(_all_probabilities(answers), _all_probabilities(expected), strict=True)
    return max(abs(float(np.log(one) - np.log(other))) for one, other in pairs)


def _all_probabilities(answers: Answers) -> list[float]:
    return [probability for options in answers.values() for probability in options.values()]


def _by_option(question: Question, lines: list[NDArray[np.float64]]) -> dict[str, float]:
    """A selection has a line an option, the first label of each its yes; other questions have one, over the options."""
    is_selection = question.kind is Kind.SELECTION
    values = [line[0] for line in lines] if is_selection else list(lines[0])
    return {option.key: float(value) for option, value in zip(question.options, values, strict=True)}


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares
