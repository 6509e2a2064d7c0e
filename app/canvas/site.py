"""A schema at its place in a rubric, and the reader that opens one.

A rubric is hostile input. Whoever looks at a part of it does so through one `Reader`, which follows references, counts
what it looks at against a budget, and collects what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from app.canvas.errors import Problem, RubricRejected
from app.canvas.json import Json, one_line, pointer, sentences, unescape
from app.canvas.keyword import ANNOTATIONS, CONSTRAINING, DEFINITIONS, DEMANDS, OURS

Path = tuple[str | int, ...]

ROOT: Path = ("rubric",)
# A list of problems nobody would read to its end; what is sent back stays small whatever was sent.
MAX_PROBLEMS = 256
MAX_POINTER_CHARS = 65_536
# What is referred to often is complained about often, which takes time, and is one problem.
MAX_COMPLAINTS = 4096
MAX_REFERENCE_CHARS = 1024
# A schema with more keywords counts as several.
USUAL_KEYWORDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricLimits:
    """How large a rubric may be.

    Attributes:
        max_questions, max_options: in all, and of one question.
        max_labels: that a slot may choose from, as many as the tokenizer has. The options of a list share two.
        max_text_chars: of one title, description or option.
        max_chars: of all texts and names together; one that is shown twice counts twice.
        max_depth: schemas within schemas, references included.
        max_nodes: schemas and options looked at; what is referred to twice counts twice.
    """

    max_questions: int
    max_options: int
    max_text_chars: int
    max_chars: int
    max_depth: int
    max_nodes: int
    max_labels: int = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A schema with its references followed.

    Attributes:
        schema: its keywords; annotations beside a reference stand before those of what is referred to.
        path: where the keywords stand, from the root of the request.
        depth: schemas around it.
        chain: references followed on the way here.
        places: where annotations stand that are not at `path`.
    """

    schema: Mapping[str, Json]
    path: Path
    depth: int = 0
    chain: tuple[str, ...] = ()
    places: Mapping[str, Path] = field(default_factory=dict)

    def at(self, keyword: str) -> Path:
        """Where a keyword stands; the place itself if it has none."""
        return (*self.places.get(keyword, self.path), keyword) if keyword in self.schema else self.path

    def has(self, *keywords: str) -> bool:
        """Whether any of the keywords is there."""
        return any(keyword in self.schema for keyword in keywords)


@dataclass(slots=True)
class _Notes:
    """Things said about places, each once. When it is full there is room for one more: that there were others."""

    _said: dict[tuple[Path, str, str], Problem] = field(default_factory=dict)
    _pointer_chars: int = 0

    @property
    def all(self) -> tuple[Problem, ...]:
        return tuple(dict.fromkeys(self._said.values()))

    @property
    def is_full(self) -> bool:
        return len(self._said) >= MAX_PROBLEMS - 1 or self._pointer_chars > MAX_POINTER_CHARS

    def add(self, path: Path, code: str, message: str) -> None:
        if (path, code, message) not in self._said:
            problem = Problem(pointer=pointer(*path), code=code, message=message)
            self._said[path, code, message] = problem
            self._pointer_chars += len(problem.pointer)


class Reader:
    """Opens the schemas of one rubric.

    Attributes:
        complaints: how often something was complained about, the same problem included.
        nodes: schemas and options looked at.
    """

    def __init__(self, root: Json, limits: RubricLimits) -> None:
        self.limits = limits
        self.complaints = 0
        self._problems = _Notes()
        self._remarks = _Notes()
        self._unused_demands: dict[Path, None] = {}
        self._root = root
        self.nodes = 0
        self._chars = 0

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong, as far as it was looked at."""
        return self._problems.all

    @property
    def remarks(self) -> tuple[Problem, ...]:
        """What is allowed and probably not meant, as far as it was looked at."""
        return self._remarks.all

    def remark(self, path: Path, code: str, message: str) -> None:
        """Note something that is allowed; no more than anybody would read."""
        if not self._remarks.is_full:
            self._remarks.add(path, code, message)

    def complain(self, path: Path, code: str, message: str) -> None:
        """Note a problem.

        Raises:
            RubricRejected: there are too many to go on.
        """
        self.complaints += 1
        self._problems.add(path, code, message)
        if self._problems.is_full or self.complaints >= MAX_COMPLAINTS:
            self.give_up(ROOT, "too_many_problems", "has more problems than are listed")

    def use(self, site: Site, keyword: str) -> Json:
        """The value of a demand, which then has been looked at."""
        self._unused_demands.pop(site.at(keyword), None)
        return site.schema[keyword]

    def remark_on_unused_demands(self) -> None:
        """Demands that were not looked at stand where nothing is asked."""
        for path in self._unused_demands:
            self.remark(path, "demand_not_used", "nothing is asked here, so no answer is held to this")

    def give_up(self, path: Path, code: str, message: str) -> None:
        """Stop here.

        Raises:
            RubricRejected: always.
        """
        self._problems.add(path, code, message)
        raise RubricRejected(self.problems)

    def visit(self, path: Path, count: int = 1) -> None:
        """Count things that are about to be looked at.

        Raises:
            RubricRejected: they are too many.
        """
        self.nodes += count
        if self.nodes > self.limits.max_nodes:
            self.give_up(path, "too_many_nodes", f"a rubric may hold {self.limits.max_nodes} schemas and options")

    def count_chars(self, path: Path, text: str) -> None:
        """Count a text that the model is shown.

        Raises:
            RubricRejected: there is too much of it.
        """
        self._chars += len(text)
        if self._chars > self.limits.max_chars:
            most = self.limits.max_chars
            self.give_up(path, "too_much_text", f"all texts and names of a rubric together may have {most} characters")

    def open(self, value: Json, path: Path, around: Site | None = None) -> Site | None:
        """The schema at a place; None, with a complaint, if there is none.

        Raises:
            RubricRejected: the budget of nodes is spent.
        """
        depth, chain = (around.depth + 1, around.chain) if around else (0, ())
        annotations: dict[str, Json] = {}
        places: dict[str, Path] = {}
        while True:
            self.visit(path)
            if not isinstance(value, Mapping):
                self.complain(path, "not_a_schema", "must be a JSON Schema object")
                return None
            self.visit(path, len(value) // USUAL_KEYWORDS)
            if depth > self.limits.max_depth:
                self.complain(path, "too_deep", f"schemas may nest {self.limits.max_depth} levels")
                return None
            if "$id" in value and path != ROOT:
                self._refuse_id(path)
            for keyword in sorted(value.keys() - CONSTRAINING - ANNOTATIONS):
                if not keyword.startswith("x-") or keyword.startswith(OURS):
                    self.remark((*path, keyword), "ignored_keyword", "JSON Schema has no such keyword: it is ignored")
            for keyword in filter(DEMANDS.__contains__, value):
                self._unused_demands[*path, keyword] = None
            if not _is_reference(value):
                schema = {**value, **annotations, **self.both_descriptions(annotations, value)}
                return Site(schema=schema, path=path, depth=depth, chain=chain, places=places)
            annotations |= self.both_descriptions(annotations, value)
            for keyword in value.keys() - CONSTRAINING - annotations.keys():
                annotations[keyword], places[keyword] = value[keyword], path
            if "$ref" not in value:
                value, path = _first(value["allOf"]), (*path, "allOf", 0)
            else:
                self.refuse(Site(schema=value, path=path), frozenset({"$ref"}))
                found = self._follow(value["$ref"], (*path, "$ref"), chain)
                if found is None:
                    return None
                value, path, chain = found
            depth += 1

    def open_all(self, site: Site, keyword: str, most: int) -> list[Site]:
        """The schemas of a keyword that holds a list of them, at most so many."""
        values = site.schema[keyword]
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            self.complain(site.at(keyword), "bad_list", f"must be an array of 1 to {most} schemas")
            return []
        opened = (self.open(value, (*site.at(keyword), i), site) for i, value in enumerate(values))
        return [one for one in opened if one is not None]

    def refuse(self, site: Site, known: frozenset[str]) -> None:
        """Complain about every keyword that constrains and is not known here."""
        for keyword in site.schema:
            if keyword in CONSTRAINING and keyword not in known:
                self.complain(
                    site.at(keyword),
                    "unsupported_keyword",
                    "this keyword is not in the language here: leave it out, or say it in words",
                )

    def text(self, site: Site, keyword: str) -> str:
        """The text of an annotation on one line; empty if there is none."""
        text = site.schema.get(keyword, "")
        if not isinstance(text, str):
            self.complain(site.at(keyword), "bad_text", "must be a string")
            return ""
        if len(text) > self.limits.max_text_chars:
            self.complain(site.at(keyword), "text_too_long", f"may have {self.limits.max_text_chars} characters")
            return ""
        self.count_chars(site.at(keyword), text)
        return one_line(text)

    def both_descriptions(self, near: Mapping[str, Json], far: Mapping[str, Json]) -> dict[str, Json]:
        """What a reference and what it refers to say of it, if both do: the nearer first."""
        texts = [text for schema in (near, far) if isinstance(text := schema.get("description"), str)]
        if len(texts) < 2:
            return {}
        longer = max(texts, key=len)
        # One that is too long is refused where it is read; copied with every reference, it would fill the memory.
        is_too_long = len(longer) > self.limits.max_text_chars
        return {"description": longer if is_too_long else sentences(*dict.fromkeys(texts))}

    def hide_texts(self, site: Site) -> None:
        """Remark on texts that are not shown, for there is nothing of their own that they could explain."""
        for keyword in filter(site.has, ("title", "description")):
            self.remark(site.at(keyword), "text_not_shown", "the model is not shown this text")

    def _follow(
        self, reference: Json, place: Path, chain: tuple[str, ...]
    ) -> tuple[Json, Path, tuple[str, ...]] | None:
        target = _local_pointer(reference)
        if target is None:
            self.complain(place, "unsupported_reference", "must refer to a place in #/$defs or #/definitions")
            return None
        if target in chain:
            self.complain(place, "cyclic_reference", "refers to a schema that it is part of")
            return None
        value, path = self._root, ROOT
        for key in map(unescape, target.split("/")[1:]):
            found = _below(value, key)
            if found is None:
                self.complain(place, "unknown_reference", "there is nothing at that place")
                return None
            value, path = found[0], (*path, key)
            if isinstance(value, Mapping) and isinstance(value.get("$id"), str):
                self._refuse_id(path)
        return value, path, (*chain, target)

    def _refuse_id(self, path: Path) -> None:
        """References below an `$id` start there and not at the root."""
        self.complain((*path, "$id"), "unsupported_keyword", "only the whole rubric may have an $id")


def _is_reference(schema: Mapping[str, Json]) -> bool:
    """Whether all a schema says is what another says: `$ref`, or an `allOf` of one beside nothing that constrains."""
    return "$ref" in schema or (_is_single(schema.get("allOf")) and schema.keys() & CONSTRAINING == {"allOf"})


def _is_single(value: Json) -> bool:
    return isinstance(value, list) and len(value) == 1


def _first(value: Json) -> Json:
    assert isinstance(value, list), "an allOf of one is a list; this is a bug"
    first: Json = value[0]
    return first


def _local_pointer(reference: Json) -> str | None:
    """The JSON Pointer of a reference that may be followed. A fragment is decoded before it is a pointer (RFC 6901)."""
    if not isinstance(reference, str) or not reference.startswith("#") or len(reference) > MAX_REFERENCE_CHARS:
        return None
    target = unquote(reference[1:])
    return target if any(target.startswith(f"/{root}/") for root in DEFINITIONS) else None


def _below(value: Json, key: str) -> tuple[Json] | None:
    """What stands under a key, wrapped, for it may be null."""
    if isinstance(value, Mapping):
        return (value[key],) if key in value else None
    if isinstance(value, Sequence) and not isinstance(value, str) and key.isascii() and key.isdigit() and len(key) < 6:
        return (value[int(key)],) if int(key) < len(value) else None
    return None
