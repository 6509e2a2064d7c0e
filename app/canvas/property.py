"""One property of a rubric: a question, a constant or an object."""

from __future__ import annotations

from dataclasses import replace

from app.canvas.alternatives import options_of
from app.canvas.demands import NotAnOption, read_demands
from app.canvas.field import Constant
from app.canvas.json import one_line, sentences, to_text
from app.canvas.keyword import ON_UNCERTAIN
from app.canvas.kinds import KINDS
from app.canvas.option import find_option, is_scalar
from app.canvas.question import Question
from app.canvas.site import Reader, Site

MAX_EXAMPLES = 5


def text_of(site: Site, reader: Reader) -> str:
    """Title and description."""
    text = sentences(reader.text(site, "title"), reader.text(site, "description"))
    if len(text) > reader.limits.max_text_chars:
        most = reader.limits.max_text_chars
        reader.complain(site.path, "text_too_long", f"title and description may have {most} characters together")
    return text


def within(around: str, text: str) -> str:
    """A text behind that of the object around it."""
    return ": ".join(filter(None, (around, text)))


def is_constant(site: Site) -> bool:
    """Whether a schema admits one value only."""
    values = site.schema.get("enum")
    return site.has("const") or (isinstance(values, list) and len(values) == 1) or site.schema.get("type") == "null"


def parse_constant(site: Site, reader: Reader) -> Constant:
    """The one value. Complains about everything wrong; what it returns then is not used."""
    options = options_of(site, reader, least=1)
    return Constant(value=options[0].value if options else None)


def parse_question(site: Site, core: Site, reader: Reader, names: tuple[str, ...], around: str) -> Question:
    """The question of a schema; `core` is what it admits beside null."""
    reader.count_chars(core.path, around)
    kind = next(kind for kind in KINDS if kind.claims(site if kind.asks_null else core))
    own = text_of(site if core.has("const") else core, reader)  # the texts of a single option are shown with it
    question = kind.parse(site if kind.asks_null else core, reader, names, within(around, own or kind.default_text))
    hints = sentences(_examples(core, question, reader), _default(core, question))
    reader.count_chars(core.path, hints)
    if core is not site and not kind.asks_null:
        reader.remark(site.path, "null_not_asked", "null is never the answer here")
    text = sentences(question.text, hints)
    return with_demands(replace(question, text=text, own_text=own), core, reader)


def with_demands(question: Question, site: Site, reader: Reader) -> Question:
    """The question with what its property demands of an answer."""
    demands = read_demands(site, reader)
    if site.has(ON_UNCERTAIN):
        try:
            demands = replace(demands, stand_in=(question.standing_in(reader.use(site, ON_UNCERTAIN)),))
        except NotAnOption:
            reader.complain(site.at(ON_UNCERTAIN), "bad_demand", "must be what an answer may be")
    return replace(question, demands=demands)


def _examples(site: Site, question: Question, reader: Reader) -> str:
    examples = site.schema.get("examples")
    if not isinstance(examples, list):
        return ""
    shown = []
    for index, example in enumerate(examples[:MAX_EXAMPLES]):
        most = reader.limits.max_text_chars
        if isinstance(example, str) and len(example) > most:
            reader.complain((*site.at("examples"), index), "text_too_long", f"may have {most} characters")
        elif is_scalar(example) and example is not None:
            option = find_option(question.options, example)
            shown.append(option.name if option else one_line(to_text(example)))
    said = "; ".join(filter(None, shown))
    return f"For example: {said}" if said else ""


def _default(site: Site, question: Question) -> str:
    """What to answer where the state says nothing: JSON Schema's meaning of `default`."""
    option = find_option(question.options, site.schema.get("default", ())) if site.has("default") else None
    return f"If it is not stated: {option.name}" if option else ""
