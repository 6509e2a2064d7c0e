"""Models of pydantic as rubrics: what `model_json_schema()` prints is posted as it is, and the decision is an instance.

A model below has a docstring only where its case is about one, because pydantic writes it into the schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import annotated_types
import httpx
import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    NonNegativeInt,
    PositiveInt,
    PrivateAttr,
    RootModel,
    WithJsonSchema,
    computed_field,
    confloat,
    conint,
    conlist,
    conset,
    create_model,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType, TypedDict

from engine.fake import FakeEngine, Logprobs
from engine.protocol import Branch, CanvasSlot, ReadRequest
from tests.app.json_pointer import follow

Item = TypeVar("Item")

# What a field is


class Booleans(BaseModel):
    refill: bool
    emergency: bool = Field(title="Emergency", description="Is the member in danger?")


class Strings(BaseModel):
    topic: Literal["billing", "symptoms", "scheduling"]


class OddStrings(BaseModel):
    said: Literal["a/b", "~", "Größe 東京", "<turn|>", '"', "two words", "null", "1"]


class Integers(BaseModel):
    grade: Literal[1, 2, 6]


class LiteralBooleans(BaseModel):
    refill: Literal[True, False]


class Mixed(BaseModel):
    anything: Literal["seven", 7, True, None]


class LiteralNull(BaseModel):
    topic: Literal["billing", "symptoms", None]


class LikeJson(BaseModel):
    said: Literal["true", "false", "null"]


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Topic(StrEnum):
    """What the member writes about.

    One of these, and no other.
    """

    BILLING = "billing"
    SYMPTOMS = "symptoms"


class Severity(IntEnum):
    """How bad it is."""

    LOW = 1
    MIDDLE = 5
    HIGH = 9


class Plan(str, Enum):  # noqa: UP042 - how it was written before Python 3.11, and still is
    BASIC = "basic"
    FULL = "full"


class Odd(Enum):
    TEXT = "text"
    NUMBER = 3
    HALF = 0.5


class Size(Enum):
    SMALL = "S"
    LARGE = "L"

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        return {**schema, "x-option-descriptions": {"S": "fits a letter box", "L": "does not"}}


Letter = Enum("Letter", "a b c d e f g h i j k l m n o p q r s t u v w x y z")


class Enums(BaseModel):
    colour: Colour
    topic: Topic
    severity: Severity
    plan: Plan
    odd: Odd


class EnumTwice(BaseModel):
    wall: Colour
    door: Colour = Field(description="The door's colour")
    roof: Colour | None


class DescribedEnum(BaseModel):
    size: Size


class ManyOptions(BaseModel):
    letter: Letter


# What may be null


class OptionalBoolean(BaseModel):
    refill: bool | None


class OptionalLiterals(BaseModel):
    topic: Literal["billing", "symptoms"] | None = Field(None, description="What the member writes about")
    grade: Literal[1, 2, 3] | None
    alone: Literal["yes"] | None = None


class OptionalEnums(BaseModel):
    colour: Colour | None
    topic: Topic | None = Topic.BILLING
    severity: Severity | None = Field(None, title="Severity")


class OptionalNumbers(BaseModel):
    pain: Annotated[int, Field(ge=0, le=3)] | None
    grade: int | None = Field(None, gt=0, lt=4)
    dose: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] | None


class NeverPrintedNull(BaseModel):
    topic: Literal["billing", "symptoms"] | SkipJsonSchema[None] = None


# Numbers


class Levels(BaseModel):
    closed: int = Field(ge=1, le=5)
    opened: int = Field(gt=0, lt=4)
    half_open: int = Field(gt=-3, le=0)


class FewestAndMostLevels(BaseModel):
    two: int = Field(ge=0, le=1)
    ten: int = Field(ge=1, le=10)


class NamedLevels(BaseModel):
    positive: PositiveInt = Field(le=3)
    natural: NonNegativeInt = Field(lt=3)
    interval: Annotated[int, annotated_types.Interval(ge=-1, lt=2)]
    annotated: Annotated[int, annotated_types.Ge(7), annotated_types.Le(8)]


ConstrainedLevels = create_model(
    "ConstrainedLevels",
    pain=(conint(ge=1, le=3), ...),
    likely=(confloat(ge=0, le=1), ...),
    tens=(conint(ge=0, le=90, multiple_of=10), ...),
)


class LevelGrids(BaseModel):
    fives: int = Field(ge=0, le=20, multiple_of=5)
    off_the_bounds: int = Field(ge=-5, le=20, multiple_of=7)
    opened: int = Field(gt=0, lt=9, multiple_of=3)


class Probabilities(BaseModel):
    likely: float = Field(ge=0, le=1)
    as_floats: float = Field(0.5, ge=0.0, le=1.0, description="Will the member call again?")
    annotated: Annotated[float, annotated_types.Interval(ge=0, le=1)]


class NumberGrids(BaseModel):
    halves: float = Field(ge=0, le=2, multiple_of=0.5)
    signed: float = Field(ge=-1, le=1, multiple_of=0.5)
    quarters: float = Field(ge=0, le=1, multiple_of=0.25)
    opened: float = Field(gt=0, lt=1, multiple_of=0.25)


class Tenths(BaseModel):
    dose: float = Field(ge=0, le=0.5, multiple_of=0.1)


# Several of them


class Lists(BaseModel):
    tags: list[Literal["new", "urgent", "spam"]]
    colours: list[Colour] = Field(description="Colours that are named")
    mixed: list[Literal["none", 1, 2]]


class Sets(BaseModel):
    colours: set[Colour] = Field(min_length=1, max_length=2)
    topics: frozenset[Topic]
    severities: set[Severity] = Field(min_length=1)


class Tuples(BaseModel):
    tags: tuple[Literal["new", "urgent", "spam"], ...]
    one: tuple[Literal["new", "urgent", "spam"], ...] = Field(min_length=1, max_length=1)


class Sequences(BaseModel):
    tags: Sequence[Literal["new", "urgent", "spam"]] = Field(min_length=2)
    colours: Sequence[Colour] = Field((), max_length=1)


class Bounds(BaseModel):
    exactly: list[Literal["a", "b", "c", "d"]] = Field(min_length=2, max_length=2)
    everything: set[Literal["a", "b", "c"]] = Field(min_length=3)
    roomy: list[Literal["a", "b"]] = Field(max_length=10)


class OptionalLists(BaseModel):
    tags: list[Literal["new", "urgent"]] | None = None
    colours: set[Colour] | None = Field(None, min_length=1, max_length=2)
    topics: tuple[Topic, ...] | None


class ListsOfLevels(BaseModel):
    levels: list[Annotated[int, Field(ge=1, le=4)]] = Field(max_length=2)
    ages: set[Annotated[int, Field(ge=0, le=20, multiple_of=10)]]


ConstrainedLists = create_model(
    "ConstrainedLists",
    tags=(conlist(Literal["new", "urgent", "spam"], min_length=1, max_length=2), ...),  # type: ignore[arg-type]
    colours=(conset(Colour, max_length=1), ...),
)

# Models in models


class Contact(BaseModel):
    """Whom to call."""

    by: Literal["phone", "mail"]
    urgency: int = Field(ge=1, le=3)


class Nested(BaseModel):
    contact: Contact


class Twice(BaseModel):
    first: Contact
    second: Contact = Field(description="Whom to call if nobody answers")


class Street(BaseModel):
    kind: Literal["road", "lane"]
    lit: bool


class Address(BaseModel):
    street: Street
    floor: int = Field(ge=0, le=2)


class Household(BaseModel):
    address: Address
    plan: Plan


class ThreeLevels(BaseModel):
    household: Household
    refill: bool


class OptionalNested(BaseModel):
    refill: bool
    contact: Contact | None = Field(None, description="Is anybody to be called?")


class OptionalAndNot(BaseModel):
    owner: Contact
    guest: Contact | None


class Visit(BaseModel):
    address: Address | None
    tags: set[Literal["new", "urgent", "spam"]] = Field(min_length=1)
    likely: float = Field(ge=0, le=1)


class OptionalBelowOptional(BaseModel):
    visit: Visit | None
    contact: Contact | None = None


class NestedKinds(BaseModel):
    visit: Visit


def in_all_of(schema: dict[str, Any]) -> None:
    """Wrap a reference, as pydantic printed it until 2.8 where a field has annotations of its own."""
    schema["allOf"] = [{"$ref": schema.pop("$ref")}]


class AllOf(BaseModel):
    contact: Contact = Field(description="Whom to call", json_schema_extra=in_all_of)
    colour: Colour = Field(Colour.RED, json_schema_extra=in_all_of)
    plain: Contact


@pydantic_dataclass
class Delivery:
    size: Size
    fast: bool = False


class Parcel(TypedDict):
    colour: Colour
    weight: Annotated[int, Field(ge=1, le=2)]


class OtherRecords(BaseModel):
    delivery: Delivery
    parcel: Parcel


class Choice(RootModel[Literal["left", "right"]]):
    """Which way."""


class Choices(RootModel[list[Literal["left", "right"]]]):
    pass


class Roots(BaseModel):
    choice: Choice
    choices: Choices
    optional: Choice | None


Direction = TypeAliasType("Direction", Literal["north", "south"])
Heading = TypeAliasType("Heading", Direction)
Level = TypeAliasType("Level", Annotated[int, Field(ge=1, le=3)])
Places = TypeAliasType("Places", "list[Direction]")


class Aliased(BaseModel):
    direction: Direction
    heading: Heading | None
    level: Level = Field(description="Height")
    places: Places
    contact: Contact


# What is always the same, and what is one of several


class Only(Enum):
    VERSION = "v1"


class Constants(BaseModel):
    kind: Literal["triage"] = "triage"
    version: Literal[2]
    final: Literal[True]
    only: Only
    refill: bool


class NullConstants(BaseModel):
    nothing: None
    null: Literal[None] = None
    refill: bool


class NestedConstant(BaseModel):
    kind: Literal["contact"]
    urgent: bool


class ConstantsBelow(BaseModel):
    contact: NestedConstant
    maybe: NestedConstant | None


class Unions(BaseModel):
    either: Literal["a"] | Literal["b"]
    more: Literal["a", "b"] | Literal["c", 4]
    optional: Literal["a"] | Literal["b"] | None


class EnumOrLiteral(BaseModel):
    colour: Colour | Literal["other"]
    severity: Severity | Literal["unknown"] | None
    either: Colour | Topic


# What is said about a field


class Annotations(BaseModel):
    topic: Annotated[Literal["billing", "symptoms"], Field(title="Topic", description="What is it about?")]
    colour: Annotated[Colour, Field(description="Its\ncolour", examples=["red"], deprecated=True)] = Colour.RED
    pain: Annotated[int, Field(ge=0, le=2, title="Pain", examples=[0, 1])] = 1
    refill: Annotated[bool, Field(deprecated="ask no more", json_schema_extra={"x-note": {"type": ["odd"]}})] = False
    contact: Annotated[Contact, Field(title="Contact", examples=[{"by": "phone", "urgency": 1}])]


class OptionDescriptions(BaseModel):
    topic: Literal["billing", "symptoms"] = Field(
        json_schema_extra={"x-option-descriptions": {"billing": "about money", "symptoms": "about an illness"}}
    )
    grade: Literal[1, 2] | None = Field(json_schema_extra={"x-option-descriptions": {"1": "good", "null": "no grade"}})
    refill: bool = Field(json_schema_extra={"x-option-descriptions": {"true": "asks for tablets", "false": "does not"}})
    pain: int = Field(ge=0, le=2, json_schema_extra={"x-option-descriptions": {"0": "none", "2": "unbearable"}})
    tags: list[Literal["new", "spam"]] = Field(
        json_schema_extra={"x-option-descriptions": {"new": "seen never before"}}
    )


EXPLAINED = {
    "oneOf": [
        {"const": "routine", "title": "Routine", "description": "can wait for days"},
        {"const": "urgent", "description": "now"},
    ]
}


class Explained(BaseModel):
    urgency: Annotated[Literal["routine", "urgent"], WithJsonSchema(EXPLAINED)]


class AttributeDocstrings(BaseModel):
    """A model of a message.

    Its fields are described below them.
    """

    model_config = ConfigDict(use_attribute_docstrings=True, title="Message")

    topic: Literal["billing", "symptoms"]
    """What it is about."""
    contact: Contact
    """Whom to call."""


class Examples(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"refill": True}], "x-owner": "the pharmacy"})

    refill: bool


# What a model is


class Aliases(BaseModel):
    topic: Literal["billing", "symptoms"] = Field(alias="Topic of the message")
    refill: bool = Field(validation_alias="wants/refill")
    colour: Colour = Field(validation_alias=AliasChoices("tilde~colour", "colour"))
    pain: int = Field(ge=0, le=2, serialization_alias="never printed")


class ByName(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    wants_refill: bool
    main_topic: Literal["billing", "symptoms"]
    call_back: Contact | None = None


class KeywordNames(BaseModel):
    type: Literal["object", "null"]
    properties: bool
    required: int = Field(ge=0, le=1)
    enum: Colour
    const: Literal["x", "y"] | None
    items: list[Literal["enum", "const"]]
    title: bool
    reference: bool = Field(alias="$ref")
    definitions: Contact = Field(alias="$defs")
    condition: bool = Field(alias="if")


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    refill: bool
    contact: Contact


class ClosedContact(Contact):
    model_config = ConfigDict(extra="forbid")


class ClosedBelow(BaseModel):
    contact: ClosedContact
    maybe: ClosedContact | None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    topic: Topic
    tags: list[Literal["new", "urgent"]]


class Derived(Contact):
    urgency: int = Field(2, gt=0, lt=3)
    colour: Colour


class Box(BaseModel, Generic[Item]):
    """A value and how sure it is."""

    value: Item
    sure: bool


class Boxes(BaseModel):
    literal: Box[Literal["x/y", "z"]]
    enum: Box[Colour | None]
    model: Box[Contact]


class Defaults(BaseModel):
    refill: bool = False
    colour: Colour = Colour.BLUE
    pain: int = Field(1, ge=0, le=2)
    tags: list[Literal["new", "urgent"]] = Field(default_factory=list)
    contact: Contact = Contact(by="phone", urgency=1)
    made: Contact = Field(default_factory=lambda: Contact(by="mail", urgency=2))


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, use_enum_values=True, validate_default=True)

    colour: Colour = Colour.RED
    topics: frozenset[Topic] = frozenset()


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    refill: bool
    topic: Literal["billing", "symptoms"]
    pain: int = Field(ge=0, le=2)
    dose: float = Field(ge=0, le=1, multiple_of=0.5)
    likely: float = Field(ge=0, le=1)


class NotAsked(BaseModel):
    version: ClassVar[str] = "1"
    _seen: bool = PrivateAttr(default=False)
    pain: int = Field(ge=0, le=2)

    @computed_field
    def hurts(self) -> bool:
        """Whether there is pain."""
        return self.pain > 0

    @field_validator("pain")
    @classmethod
    def is_a_level(cls, pain: int) -> int:
        """Pass it on."""
        return pain


TWENTY_FIELDS: dict[str, Any] = {
    **{f"yes_{n}": (bool, Field(description=f"Is it the {n}th?")) for n in range(10)},
    **{f"topic_{n}": (Literal["billing", "symptoms", "scheduling"], ...) for n in range(5)},
    **{f"pain_{n}": (int, Field(ge=0, le=4)) for n in range(5)},
}
TwentyFields = create_model("TwentyFields", **TWENTY_FIELDS)


# What is expected of them


class Kind(StrEnum):
    """What the decision holds at a question's place."""

    CHOICE = "one of the options"
    PROBABILITY = "the probability of true"
    SELECTION = "an array of options"
    PRESENCE = "an object, or null"


@dataclass(frozen=True)
class Asked:
    """A question that has to be asked.

    Attributes:
        options: the keys of its `probabilities`, as `canonical` writes them.
        fewest, most: how many a selection may hold.
    """

    kind: Kind
    options: tuple[str, ...] = ("true", "false")
    fewest: int = 0
    most: int = 1000


def one_of(*options: str) -> Asked:
    """A question with one answer."""
    return Asked(Kind.CHOICE, options)


def any_of(*options: str, fewest: int = 0, most: int = 1000) -> Asked:
    """A question with any number of answers."""
    return Asked(Kind.SELECTION, options, fewest, most)


@dataclass(frozen=True)
class Case:
    """A model as a rubric.

    Attributes:
        asked: every question, by its id.
        constants: what the decision holds without asking, by its place.
    """

    id: str
    model: type[BaseModel]
    asked: Mapping[str, Asked]
    constants: Mapping[str, object] = field(default_factory=dict)


YES_NO = one_of("true", "false")
YES_NO_NULL = one_of("true", "false", "null")
PROBABILITY = Asked(Kind.PROBABILITY)
PRESENCE = Asked(Kind.PRESENCE)
COLOURS = ("red", "green", "blue")
COLOUR = one_of(*COLOURS)
TOPIC = one_of("billing", "symptoms")
TAGS = ("new", "urgent", "spam")


def below(path: str, asked: Mapping[str, Asked]) -> dict[str, Asked]:
    """The questions of a nested model."""
    return {f"{path}/{question}": kind for question, kind in asked.items()}


CONTACT = {"by": one_of("phone", "mail"), "urgency": one_of("1", "2", "3")}
ADDRESS = {**below("street", {"kind": one_of("road", "lane"), "lit": YES_NO}), "floor": one_of("0", "1", "2")}
VISIT = {
    "address": PRESENCE,
    **below("address", ADDRESS),
    "tags": any_of(*TAGS, fewest=1),
    "likely": PROBABILITY,
}

FIELD_CASES = (
    Case("booleans", Booleans, {"refill": YES_NO, "emergency": YES_NO}),
    Case("strings", Strings, {"topic": one_of("billing", "symptoms", "scheduling")}),
    Case(
        "odd strings",
        OddStrings,
        {"said": one_of("a/b", "~", "Größe 東京", "<turn|>", '"', "two words", "null", "1")},
    ),
    Case("integers", Integers, {"grade": one_of("1", "2", "6")}),
    Case("literal booleans", LiteralBooleans, {"refill": YES_NO}),
    Case("mixed", Mixed, {"anything": one_of("seven", "7", "true", "null")}),
    Case("literal null", LiteralNull, {"topic": one_of("billing", "symptoms", "null")}),
    Case("strings that look like JSON", LikeJson, {"said": one_of("true", "false", "null")}),
    Case(
        "enums",
        Enums,
        {
            "colour": COLOUR,
            "topic": TOPIC,
            "severity": one_of("1", "5", "9"),
            "plan": one_of("basic", "full"),
            "odd": one_of("text", "3", "0.5"),
        },
    ),
    Case("an enum twice", EnumTwice, {"wall": COLOUR, "door": COLOUR, "roof": one_of(*COLOURS, "null")}),
    Case("a described enum", DescribedEnum, {"size": one_of("S", "L")}),
    Case("many options", ManyOptions, {"letter": one_of(*(str(n) for n in range(1, 27)))}),
    Case("an optional boolean", OptionalBoolean, {"refill": YES_NO_NULL}),
    Case(
        "optional literals",
        OptionalLiterals,
        {
            "topic": one_of("billing", "symptoms", "null"),
            "grade": one_of("1", "2", "3", "null"),
            "alone": one_of("yes", "null"),
        },
    ),
    Case(
        "optional enums",
        OptionalEnums,
        {
            "colour": one_of(*COLOURS, "null"),
            "topic": one_of("billing", "symptoms", "null"),
            "severity": one_of("1", "5", "9", "null"),
        },
    ),
    Case(
        "optional numbers",
        OptionalNumbers,
        {
            "pain": one_of("0", "1", "2", "3", "null"),
            "grade": one_of("1", "2", "3", "null"),
            "dose": one_of("0", "0.5", "1", "null"),
        },
    ),
    Case("a null that is not printed", NeverPrintedNull, {"topic": TOPIC}),
)
NUMBER_CASES = (
    Case(
        "levels",
        Levels,
        {
            "closed": one_of("1", "2", "3", "4", "5"),
            "opened": one_of("1", "2", "3"),
            "half_open": one_of("-2", "-1", "0"),
        },
    ),
    Case(
        "the fewest and the most levels",
        FewestAndMostLevels,
        {"two": one_of("0", "1"), "ten": one_of(*(str(n) for n in range(1, 11)))},
    ),
    Case(
        "named levels",
        NamedLevels,
        {
            "positive": one_of("1", "2", "3"),
            "natural": one_of("0", "1", "2"),
            "interval": one_of("-1", "0", "1"),
            "annotated": one_of("7", "8"),
        },
    ),
    Case(
        "conint and confloat",
        ConstrainedLevels,
        {
            "pain": one_of("1", "2", "3"),
            "likely": PROBABILITY,
            "tens": one_of(*(str(n) for n in range(0, 100, 10))),
        },
    ),
    Case(
        "grids of integers",
        LevelGrids,
        {
            "fives": one_of("0", "5", "10", "15", "20"),
            "off_the_bounds": one_of("0", "7", "14"),
            "opened": one_of("3", "6"),
        },
    ),
    Case("probabilities", Probabilities, dict.fromkeys(("likely", "as_floats", "annotated"), PROBABILITY)),
    Case(
        "grids of numbers",
        NumberGrids,
        {
            "halves": one_of("0", "0.5", "1", "1.5", "2"),
            "signed": one_of("-1", "-0.5", "0", "0.5", "1"),
            "quarters": one_of("0", "0.25", "0.5", "0.75", "1"),
            "opened": one_of("0.25", "0.5", "0.75"),
        },
    ),
    Case("tenths", Tenths, {"dose": one_of("0", "0.1", "0.2", "0.3", "0.4", "0.5")}),
)
SELECTION_CASES = (
    Case("lists", Lists, {"tags": any_of(*TAGS), "colours": any_of(*COLOURS), "mixed": any_of("none", "1", "2")}),
    Case(
        "sets",
        Sets,
        {
            "colours": any_of(*COLOURS, fewest=1, most=2),
            "topics": any_of("billing", "symptoms"),
            "severities": any_of("1", "5", "9", fewest=1),
        },
    ),
    Case("tuples", Tuples, {"tags": any_of(*TAGS), "one": any_of(*TAGS, fewest=1, most=1)}),
    Case("sequences", Sequences, {"tags": any_of(*TAGS, fewest=2), "colours": any_of(*COLOURS, most=1)}),
    Case(
        "bounds",
        Bounds,
        {
            "exactly": any_of("a", "b", "c", "d", fewest=2, most=2),
            "everything": any_of("a", "b", "c", fewest=3),
            "roomy": any_of("a", "b", most=10),
        },
    ),
    Case(
        "optional lists",
        OptionalLists,
        {
            "tags": any_of("new", "urgent"),
            "colours": any_of(*COLOURS, fewest=1, most=2),
            "topics": any_of("billing", "symptoms"),
        },
    ),
    Case(
        "lists of levels",
        ListsOfLevels,
        {"levels": any_of("1", "2", "3", "4", most=2), "ages": any_of("0", "10", "20")},
    ),
    Case(
        "conlist and conset",
        ConstrainedLists,
        {"tags": any_of(*TAGS, fewest=1, most=2), "colours": any_of(*COLOURS, most=1)},
    ),
)
NESTED_CASES = (
    Case("nested", Nested, below("contact", CONTACT)),
    Case("the same model twice", Twice, {**below("first", CONTACT), **below("second", CONTACT)}),
    Case(
        "three levels",
        ThreeLevels,
        {
            **below("household", {**below("address", ADDRESS), "plan": one_of("basic", "full")}),
            "refill": YES_NO,
        },
    ),
    Case("an optional model", OptionalNested, {"refill": YES_NO, "contact": PRESENCE, **below("contact", CONTACT)}),
    Case(
        "optional and not",
        OptionalAndNot,
        {**below("owner", CONTACT), "guest": PRESENCE, **below("guest", CONTACT)},
    ),
    Case(
        "optional below optional",
        OptionalBelowOptional,
        {"visit": PRESENCE, **below("visit", VISIT), "contact": PRESENCE, **below("contact", CONTACT)},
    ),
    Case("every kind below", NestedKinds, below("visit", VISIT)),
    Case("allOf", AllOf, {**below("contact", CONTACT), "colour": COLOUR, **below("plain", CONTACT)}),
    Case(
        "a dataclass and a TypedDict",
        OtherRecords,
        {
            **below("delivery", {"size": one_of("S", "L"), "fast": YES_NO}),
            **below("parcel", {"colour": COLOUR, "weight": one_of("1", "2")}),
        },
    ),
    Case(
        "root models",
        Roots,
        {
            "choice": one_of("left", "right"),
            "choices": any_of("left", "right"),
            "optional": one_of("left", "right", "null"),
        },
    ),
    Case(
        "named types",
        Aliased,
        {
            "direction": one_of("north", "south"),
            "heading": one_of("north", "south", "null"),
            "level": one_of("1", "2", "3"),
            "places": any_of("north", "south"),
            **below("contact", CONTACT),
        },
    ),
)
CONSTANT_CASES = (
    Case(
        "constants",
        Constants,
        {"refill": YES_NO},
        {"kind": "triage", "version": 2, "final": True, "only": "v1"},
    ),
    Case("constants that are null", NullConstants, {"refill": YES_NO}, {"nothing": None, "null": None}),
    Case(
        "constants below",
        ConstantsBelow,
        {"contact/urgent": YES_NO, "maybe": PRESENCE, "maybe/urgent": YES_NO},
        {"contact/kind": "contact"},
    ),
    Case(
        "unions of literals",
        Unions,
        {"either": one_of("a", "b"), "more": one_of("a", "b", "c", "4"), "optional": one_of("a", "b", "null")},
    ),
    Case(
        "an enum or a literal",
        EnumOrLiteral,
        {
            "colour": one_of(*COLOURS, "other"),
            "severity": one_of("1", "5", "9", "unknown", "null"),
            "either": one_of(*COLOURS, "billing", "symptoms"),
        },
    ),
)
MODEL_CASES = (
    Case(
        "annotations",
        Annotations,
        {
            "topic": TOPIC,
            "colour": COLOUR,
            "pain": one_of("0", "1", "2"),
            "refill": YES_NO,
            **below("contact", CONTACT),
        },
    ),
    Case(
        "x-option-descriptions",
        OptionDescriptions,
        {
            "topic": TOPIC,
            "grade": one_of("1", "2", "null"),
            "refill": YES_NO,
            "pain": one_of("0", "1", "2"),
            "tags": any_of("new", "spam"),
        },
    ),
    Case("oneOf", Explained, {"urgency": one_of("routine", "urgent")}),
    Case("docstrings of attributes", AttributeDocstrings, {"topic": TOPIC, **below("contact", CONTACT)}),
    Case("annotations of the root", Examples, {"refill": YES_NO}),
    Case(
        "aliases",
        Aliases,
        {
            "Topic of the message": TOPIC,
            "wants~1refill": YES_NO,
            "tilde~0colour": COLOUR,
            "pain": one_of("0", "1", "2"),
        },
    ),
    Case(
        "populate_by_name",
        ByName,
        {"wantsRefill": YES_NO, "mainTopic": TOPIC, "callBack": PRESENCE, **below("callBack", CONTACT)},
    ),
    Case(
        "names that are keywords",
        KeywordNames,
        {
            "type": one_of("object", "null"),
            "properties": YES_NO,
            "required": one_of("0", "1"),
            "enum": COLOUR,
            "const": one_of("x", "y", "null"),
            "items": any_of("enum", "const"),
            "title": YES_NO,
            "$ref": YES_NO,
            **below("$defs", CONTACT),
            "if": YES_NO,
        },
    ),
    Case("extra forbidden", Closed, {"refill": YES_NO, **below("contact", CONTACT)}),
    Case(
        "extra forbidden below",
        ClosedBelow,
        {**below("contact", CONTACT), "maybe": PRESENCE, **below("maybe", CONTACT)},
    ),
    Case("extra allowed", Open, {"topic": TOPIC, "tags": any_of("new", "urgent")}),
    Case(
        "inheritance",
        Derived,
        {"by": one_of("phone", "mail"), "urgency": one_of("1", "2"), "colour": COLOUR},
    ),
    Case("a generic model", Box[Literal["x", "y"]], {"value": one_of("x", "y"), "sure": YES_NO}),
    Case(
        "generic models below",
        Boxes,
        {
            **below("literal", {"value": one_of("x/y", "z"), "sure": YES_NO}),
            **below("enum", {"value": one_of(*COLOURS, "null"), "sure": YES_NO}),
            **below("model", {**below("value", CONTACT), "sure": YES_NO}),
        },
    ),
    Case(
        "defaults",
        Defaults,
        {
            "refill": YES_NO,
            "colour": COLOUR,
            "pain": one_of("0", "1", "2"),
            "tags": any_of("new", "urgent"),
            **below("contact", CONTACT),
            **below("made", CONTACT),
        },
    ),
    Case("frozen", Frozen, {"colour": COLOUR, "topics": any_of("billing", "symptoms")}),
    Case(
        "strict",
        Strict,
        {
            "refill": YES_NO,
            "topic": TOPIC,
            "pain": one_of("0", "1", "2"),
            "dose": one_of("0", "0.5", "1"),
            "likely": PROBABILITY,
        },
    ),
    Case("what is no field", NotAsked, {"pain": one_of("0", "1", "2")}),
    Case(
        "twenty fields",
        TwentyFields,
        {
            **{f"yes_{n}": YES_NO for n in range(10)},
            **{f"topic_{n}": one_of("billing", "symptoms", "scheduling") for n in range(5)},
            **{f"pain_{n}": one_of("0", "1", "2", "3", "4") for n in range(5)},
        },
    ),
)
CASES = (*FIELD_CASES, *NUMBER_CASES, *SELECTION_CASES, *NESTED_CASES, *CONSTANT_CASES, *MODEL_CASES)
POLICIES: tuple[dict[str, Any], ...] = (
    *({"seed": seed} for seed in range(5)),
    {"layout": "split"},
    {"layout": "isolated"},
    {"order": "state_first"},
)


def first_wins(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """The first label of every slot."""
    return (-1e-6, *(-20.0 for _ in slot.label_token_ids[1:]))


def last_wins(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """The last label of every slot."""
    return (*(-20.0 for _ in slot.label_token_ids[1:]), -1e-6)


def nothing_wins(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """No label of any slot."""
    count = len(slot.label_token_ids)
    return (-math.log(count),) * count


SCRIPTS: tuple[Logprobs, ...] = (first_wins, last_wins, nothing_wins)


async def decide(client: httpx.AsyncClient, case: Case, **policy: Any) -> dict[str, Any]:
    """What the service answers to a model's schema, whatever pydantic printed."""
    rubric = case.model.model_json_schema()
    response = await client.post("/decide", json={"state": "Please call me.", "rubric": rubric, "policy": policy})
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered


def canonical(key: str) -> str:
    """An option's key; a whole number may be written with its fraction or without."""
    return key.removesuffix(".0")


def key_of(value: Any) -> str:
    """An option's key: itself if it is a string, else its JSON text."""
    return canonical(value if isinstance(value, str) else json.dumps(value))


def check(case: Case, answered: Mapping[str, Any]) -> None:
    """The decision is an instance of the model, and it is what the answers say."""
    decision, answers = answered["decision"], answered["answers"]
    case.model.model_validate(decision)
    # Again where nothing is converted: 1 is no boolean, "1" no number.
    case.model.model_validate_json(json.dumps(decision), strict=True)
    assert answers.keys() == case.asked.keys()
    assert {place: follow(decision, f"/{place}") for place in case.constants} == case.constants
    skipped = set(skipped_questions(case, answers))
    for question, asked in case.asked.items():
        answer = answers[question]
        probabilities = {canonical(key): p for key, p in answer["probabilities"].items()}
        check_probabilities(asked, probabilities)
        assert (answer["outcome"] == "skipped") is (question in skipped)
        if question not in skipped:
            check_value(asked, answer["value"], probabilities, follow(decision, f"/{question}"))


def skipped_questions(case: Case, answers: Mapping[str, Any]) -> Iterator[str]:
    """Questions about objects that are not there."""
    for path, asked in case.asked.items():
        if asked.kind is Kind.PRESENCE and answers[path]["value"] is False:
            yield from (question for question in case.asked if question.startswith(f"{path}/"))


def check_probabilities(asked: Asked, probabilities: Mapping[str, float]) -> None:
    """Of the question's options and no others; together 1, unless each is a question of its own."""
    assert probabilities.keys() == set(asked.options)
    assert all(0 <= p <= 1 for p in probabilities.values())
    if asked.kind is not Kind.SELECTION:
        assert math.fsum(probabilities.values()) == pytest.approx(1, abs=1e-9)


def check_value(asked: Asked, value: Any, probabilities: Mapping[str, float], decided: Any) -> None:
    """What stands in the decision is what the probabilities say."""
    match asked.kind:
        case Kind.CHOICE:
            assert probabilities[key_of(decided)] == max(probabilities.values())
        case Kind.PROBABILITY:
            assert decided == pytest.approx(probabilities["true"], abs=1e-9)
        case Kind.PRESENCE:
            assert isinstance(value, bool)
            assert isinstance(decided, dict) if value else decided is None
            assert probabilities[key_of(value)] == max(probabilities.values())
        case Kind.SELECTION:
            check_selection(asked, probabilities, decided)


def check_selection(asked: Asked, probabilities: Mapping[str, float], decided: Any) -> None:
    """Each option once, those that are likelier than not, and as many more or fewer as the bounds ask for."""
    assert isinstance(decided, list)
    chosen = {key_of(value) for value in decided}
    assert len(chosen) == len(decided)
    likely = sum(p > 0.5 + 1e-9 for p in probabilities.values())
    undecided = sum(abs(p - 0.5) <= 1e-9 for p in probabilities.values())
    fewest, most = (max(asked.fewest, min(asked.most, count)) for count in (likely, likely + undecided))
    assert fewest <= len(chosen) <= most
    left_out = probabilities.keys() - chosen
    assert all(probabilities[key] >= probabilities[other] - 1e-9 for key in chosen for other in left_out)


async def test_a_decision_is_an_instance_of_the_model(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Every model, several draws of noise, every layout and order."""
    for case in CASES:
        for policy in POLICIES:
            with subtests.test(case.id, policy=policy):
                check(case, await decide(client, case, **policy))


async def test_whichever_option_wins(client: httpx.AsyncClient, fake: FakeEngine, subtests: pytest.Subtests) -> None:
    """Every model where all slots read as their first option, as their last, and as none of them."""
    for case in CASES:
        for script in SCRIPTS:
            with subtests.test(case.id, script=script.__name__):
                fake.logprobs = script
                check(case, await decide(client, case, seed=1))


async def test_an_optional_model_is_there_or_null(
    client: httpx.AsyncClient, fake: FakeEngine, subtests: pytest.Subtests
) -> None:
    """Both happen; an object that is null takes everything below it along."""
    for case in (case for case in CASES if PRESENCE in case.asked.values()):
        with subtests.test(case.id):
            skipped = []
            for script in (first_wins, last_wins):
                fake.logprobs = script
                answers = (await decide(client, case, seed=1))["answers"]
                skipped.append({question for question in answers if answers[question]["outcome"] == "skipped"})
            optional = tuple(f"{path}/" for path, asked in case.asked.items() if asked is PRESENCE)
            everything = {question for question in case.asked if question.startswith(optional)}
            assert sorted(skipped, key=len) == [set(), everything]


def test_the_models_are_many_and_told_apart() -> None:
    """The table is as large as it says, and no case hides another."""
    assert len({case.id for case in CASES}) == len(CASES) >= 36
    assert len({case.model for case in CASES}) == len(CASES)
