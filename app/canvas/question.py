"""What a rubric asks: a question, how it is put to the model, and how its slots become an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from app.canvas.demands import NO_DEMANDS, Demands, NotAnOption
from app.canvas.distribution import Distribution, choice_confidence, entropy, margin
from app.canvas.json import Json, escape
from app.canvas.label import Label, option_lines
from app.canvas.option import Option, find_option
from app.canvas.site import Reader, Site


class Kind(StrEnum):
    """How a question's options relate to each other. A label of metrics: a closed set."""

    BOOLEAN = "boolean"
    CHOICE = "choice"
    SCORE = "score"
    PROBABILITY = "probability"
    SELECTION = "selection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a question's distributions say.

    Attributes:
        value: what the decision holds.
        probability: of that value; for a selection that of its least sure option.
        probabilities: of every option, in the rubric's order; a selection's do not sum to 1.
        entropy: normalised, 0 to 1; a selection's is that of its least sure option, as are confidence and margin.
        confidence, margin: see `app.canvas.distribution`.
        cell: where `probability` stands: a line, and an option of its slot.
        expected: for scores the mean level, else None.
    """

    value: Json
    probability: float
    probabilities: Distribution
    entropy: float
    confidence: float
    margin: float
    cell: tuple[int, int]
    expected: float | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a rubric. A kind of question is a subclass, in a module of `app.canvas.kinds`.

    Attributes:
        path: property names from the rubric's root. They never reach the model: names act as instructions, and renaming
            a property must not move an answer.
        text: what the prompt asks.
        options: in the rubric's order.
        own_text: what the rubric says of the question itself; if nothing, `text` says `default_text`.
        asks_null: whether null, where it is admitted, is another option; if not, it is never the answer.
        demands: what its answer has to be to be decided.
    """

    kind: ClassVar[Kind]
    default_text: ClassVar[str]
    asks_null: ClassVar[bool] = True

    path: tuple[str, ...]
    text: str
    options: tuple[Option, ...]
    own_text: str = ""
    demands: Demands = NO_DEMANDS

    @property
    def id(self) -> str:
        """The question's place in the decision: a JSON Pointer without the leading slash."""
        return "/".join(map(escape, self.path))

    @property
    def slot_options(self) -> tuple[Option, ...]:
        """What each slot of the question may hold; all its slots share one set of labels."""
        return self.options

    @property
    def lines(self) -> int:
        """Lines of the canvas, one slot each."""
        return 1

    @property
    def schema(self) -> Mapping[str, Json]:
        """What a decision may hold here, as JSON Schema: exactly what `answer` can return."""
        return {"enum": [option.value for option in self.options]}

    def prompt(self, number: int, labels: Sequence[Label], rotation: int = 0) -> str:
        """What the prompt shows, its first line of the canvas being that `number`; options from one of them on."""
        return f"{number}. {self.text}\n" + option_lines(labels, self.options, rotation)

    def choose(self, distributions: Sequence[Distribution]) -> tuple[int, ...]:
        """The options that the value of `answer` holds, by index."""
        (distribution,) = distributions
        return (distribution.index(max(distribution)),)

    def answer(self, distributions: Sequence[Distribution]) -> Reading:
        """The answer, from one distribution over `slot_options` per line: the likeliest option, the first of equals."""
        (distribution,) = distributions
        (likeliest,) = self.choose(distributions)
        return Reading(
            value=self.options[likeliest].value,
            probability=distribution[likeliest],
            probabilities=distribution,
            entropy=entropy(distribution),
            confidence=choice_confidence(distribution),
            margin=margin(distribution),
            cell=(0, likeliest),
        )

    def standing_in(self, value: Json) -> Json:
        """What `answer` would call a value that is to stand in the decision when the answer is uncertain.

        Raises:
            NotAnOption: `answer` cannot return it.
        """
        option = find_option(self.options, value)
        if option is None:
            raise NotAnOption
        return option.value

    def decided(self, value: Json) -> Json:
        """What the decision holds for a value of `answer`."""
        return value

    @classmethod
    def claims(cls, site: Site) -> bool:
        """Whether this schema is a question of this kind."""
        raise NotImplementedError

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        """The question of a schema. Complains about everything wrong; what it returns then is not used."""
        raise NotImplementedError
