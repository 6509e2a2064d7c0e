"""The fields of a rubric while it is being understood: when each is asked is known only at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.canvas.condition import Condition, Names
from app.canvas.field import Constant, Field, Group
from app.canvas.question import Question
from app.canvas.site import Path, Reader

Conditions = tuple[Condition, ...]


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A field so far: it is asked if one of `conditions` holds as a whole, always if there are none.

    Attributes:
        declared: the conditions under which it is declared; none: always.
        conditions: by the identity of each, for they are many and slow to compare.
    """

    content: Question | Constant | Group
    place: Path
    declared: Conditions
    conditions: dict[tuple[int, ...], Conditions]
    is_required: bool = False

    def ask_under(self, conditions: Conditions) -> None:
        self.conditions[tuple(map(id, conditions))] = conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requirement:
    names: Names
    place: Path
    conditions: Conditions


@dataclass(slots=True)
class FieldList:
    """Takes declarations and requirements in any order, and makes fields of them."""

    reader: Reader
    _entries: dict[Names, _Entry] = field(default_factory=dict)
    _requirements: list[_Requirement] = field(default_factory=list)
    _closed: set[Names] = field(default_factory=set)

    def declare(self, names: Names, content: Question | Constant | Group, place: Path, conditions: Conditions) -> None:
        """A property, asked under these conditions."""
        if names in self._entries:
            message = "is declared elsewhere too: a condition may require a property, and not ask it again or narrow it"
            self.reader.complain(place, "asked_twice", message)
            return
        entry = self._entries[names] = _Entry(content=content, place=place, declared=conditions, conditions={})
        if conditions:
            entry.ask_under(conditions)

    def has(self, names: Names) -> bool:
        """Whether a property is declared already."""
        return names in self._entries

    def close(self, names: Names) -> None:
        """That an object holds only what is declared under conditions that hold."""
        self._closed.add(names)

    def require(self, names: Names, place: Path, conditions: Conditions) -> None:
        """That a property is there under these conditions."""
        self._requirements.append(_Requirement(names=names, place=place, conditions=conditions))

    def finish(self) -> tuple[Field, ...]:
        """The fields, in the order of their declaration. Complains about what does not fit together."""
        for requirement in self._requirements:
            self._require_always(requirement)
        for requirement in self._requirements:
            self._require_sometimes(requirement)
        self._check_mentions()
        return tuple(
            Field(path=names, content=entry.content, conditions=tuple(entry.conditions.values()), place=entry.place)
            for names, entry in self._entries.items()
        )

    def _require_always(self, requirement: _Requirement) -> None:
        entry = self._entries.get(requirement.names)
        if entry is None:
            self.reader.complain(requirement.place, "bad_required", "names a property that the rubric does not ask")
        elif not requirement.conditions:
            entry.is_required = True
            if entry.conditions:
                message = "names a property that the rubric asks only under a condition"
                self.reader.complain(requirement.place, "bad_required", message)

    def _require_sometimes(self, requirement: _Requirement) -> None:
        """What only a condition requires is asked under that condition."""
        entry = self._entries.get(requirement.names)
        if entry is None or entry.is_required:
            return
        is_declared_then = requirement.conditions[: len(entry.declared)] == entry.declared
        if requirement.names[:-1] in self._closed and not is_declared_then:
            message = "names a property that the object admits only under another condition"
            self.reader.complain(requirement.place, "bad_required", message)
        entry.ask_under(requirement.conditions)

    def _check_mentions(self) -> None:
        """A condition may look at what is decided before the property that it is about, and at nothing else."""
        seen: set[int] = set()
        earlier: set[Names] = set()
        for names, entry in self._entries.items():
            for condition in (one for every in entry.conditions.values() for one in every):
                # All that depends on a condition stands in one object; what comes first there speaks for the rest.
                if id(condition) not in seen:
                    seen.add(id(condition))
                    self._check_mentioned(condition, names[:-1], earlier)
            earlier.add(names)

    def _check_mentioned(self, condition: Condition, around: Names, earlier: set[Names]) -> None:
        mentioned = {(*around, *mention) for mention in condition.mentions}
        if not mentioned <= self._entries.keys():
            message = "a condition must look at properties that the rubric asks, and at nothing else"
            self.reader.complain(condition.place, "bad_condition", message)
        elif not mentioned <= earlier:
            message = "a condition must look at properties that come before what depends on it"
            self.reader.complain(condition.place, "bad_condition", message)
