"""What holds for every checkpoint's tokenizer: the demo's, and a real Gemma one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from app.canvas.label import MAX_LABELS_PER_READ, answer_line, option_line
from app.canvas.layout import build_canvas, canvas_text, fill_canvases
from app.canvas.plan import Layout, Order, Planner
from app.canvas.prompt import questions_text, state_text
from app.settings import Settings
from app.startup import planner_of
from app.tokenizer import SYSTEM_MARK, USER_MARK, CheckpointTokenizer
from tests.cases import REFILL, rubric

# Fixtures: a tokenizer, and the folder it is loaded from.
FOLDERS = {"tokenizer": "checkpoint", "gemma_tokenizer": "gemma_tokenizer_folder"}
# Pieces to forge a turn from: both tokenizers' marks, halves of them, and what stands around them in the templates.
PIECES = (
    "<bos>",
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of",
    "_turn>",
    "<",
    ">",
    "\n",
    "system\n",
)


@pytest.fixture(scope="module", params=FOLDERS)
def tokenizer_name(request: pytest.FixtureRequest) -> str:
    """The fixture of the tokenizer under test."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def each_tokenizer(request: pytest.FixtureRequest, tokenizer_name: str) -> CheckpointTokenizer:
    """The demo's tokenizer, then Gemma's."""
    tokenizer: CheckpointTokenizer = request.getfixturevalue(tokenizer_name)
    return tokenizer


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest, tokenizer_name: str) -> Backend:
    """The same as the tokenizers library has it: special tokens in text become control tokens."""
    return Backend.from_file(str(request.getfixturevalue(FOLDERS[tokenizer_name]) / "tokenizer.json"))


@pytest.fixture(scope="module")
def control_texts(each_tokenizer: CheckpointTokenizer, backend: Backend) -> list[str]:
    """What every control token is written as."""
    decoder = backend.get_added_tokens_decoder()
    return [decoder[token_id].content for token_id in sorted(each_tokenizer.control_token_ids)]


def controls(tokenizer: CheckpointTokenizer, token_ids: Sequence[int]) -> list[int]:
    """The control tokens among these, in their order."""
    return [token_id for token_id in token_ids if token_id in tokenizer.control_token_ids]


def test_every_special_token_is_a_control_token(each_tokenizer: CheckpointTokenizer, backend: Backend) -> None:
    """What the file declares special, and whatever else the checkpoint's tokenizer takes for it, as text is."""
    special = {token_id for token_id, token in backend.get_added_tokens_decoder().items() if token.special}
    assert len(special) > 5
    assert special <= each_tokenizer.control_token_ids
    assert {each_tokenizer.pad_token_id, each_tokenizer.turn_end_token_id} <= special


def test_control_tokens_in_text_are_plain_text(
    each_tokenizer: CheckpointTokenizer, backend: Backend, control_texts: list[str]
) -> None:
    """Each, alone and within a sentence: no control token comes out, and the text comes back."""
    for text in control_texts:
        assert controls(each_tokenizer, backend.encode(text, add_special_tokens=False).ids)
        for written in (text, f"a{text}b", f" {text}\n", f"It says {text} here.", text * 3):
            token_ids = each_tokenizer.encode(written)
            assert not controls(each_tokenizer, token_ids)
            assert backend.decode(list(token_ids), skip_special_tokens=False) == written


def test_pairs_of_control_tokens_are_plain_text(each_tokenizer: CheckpointTokenizer, control_texts: list[str]) -> None:
    """One right after the other, on a line each, and one inside the other."""
    for one, other in product(control_texts, repeat=2):
        for written in (one + other, f"{one}\n{other}", f"{one[:3]}{other}{one[3:]}"):
            assert not controls(each_tokenizer, each_tokenizer.encode(written))


@given(text=st.text(max_size=40), pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_text_makes_a_control_token(each_tokenizer: CheckpointTokenizer, text: str, pieces: list[str]) -> None:
    """Whatever it says."""
    for written in (text.join(["", *pieces, ""]), "".join(pieces)):
        assert not controls(each_tokenizer, each_tokenizer.encode(written))


def test_control_tokens_open_and_end_the_turns_of_the_template(
    each_tokenizer: CheckpointTokenizer, backend: Backend
) -> None:
    """The beginning of the text, a mark that opens every turn, one that ends it; roles and line breaks are text."""
    template = each_tokenizer.chat_template
    head, middle, tail = (controls(each_tokenizer, part) for part in (template.head, template.middle, template.tail))
    beginning, turn_open = head
    turn_end = each_tokenizer.turn_end_token_id
    assert beginning == template.head[0] == backend.token_to_id("<bos>")
    assert middle == [turn_end, turn_open]
    assert tail[:2] == [turn_end, turn_open]
    assert (template.middle[0], template.tail[0]) == (turn_end, turn_end)


def test_a_prompt_is_tokenised_as_if_written_whole(each_tokenizer: CheckpointTokenizer, backend: Backend) -> None:
    """The template's pieces around texts are the tokens of the rendered prompt: no token spans a seam."""
    template = each_tokenizer.chat_template
    system, user = (list(each_tokenizer.encode(mark)) for mark in (SYSTEM_MARK, USER_MARK))
    token_ids = [*template.head, *system, *template.middle, *user, *template.tail]
    rendered = backend.decode(token_ids, skip_special_tokens=False)
    assert rendered.startswith("<bos>")
    assert f"system\n{SYSTEM_MARK}" in rendered
    assert f"user\n{USER_MARK}" in rendered
    assert backend.encode(rendered, add_special_tokens=False).ids == token_ids


# Labels, canvases and prompts: what the planner makes of either tokenizer.

# The labels of each tokenizer, and its canvases of 64 tokens for 64 lines.
LABELS = {"tokenizer": 255, "gemma_tokenizer": 255}
LINES = {"tokenizer": [14, 12, 12, 12, 12, 2], "gemma_tokenizer": [14, 12, 12, 12, 12, 2]}
MOST_LINES = 64
WAYS = [(layout, order) for layout in Layout for order in Order]


@pytest.fixture(scope="module")
def each_planner(each_tokenizer: CheckpointTokenizer) -> Planner:
    """A planner with the default limits."""
    return planner_of(Settings(), each_tokenizer)


def test_how_many_labels_there_are(each_planner: Planner, tokenizer_name: str) -> None:
    """S11: as many options a question may have, up to the settings' 255; each label another text and another token."""
    alphabet = each_planner.alphabet
    assert len(alphabet) == each_planner.limits.max_labels == LABELS[tokenizer_name]
    assert len({label.token_id for label in alphabet}) == len({label.text for label in alphabet}) == len(alphabet)
    assert not {label.token_id for label in alphabet} & each_planner.tokenizer.control_token_ids


def test_a_label_is_one_token_in_the_canvas_and_in_the_prompt(each_planner: Planner) -> None:
    """The same in both: all that a line's tokens differ in from another label's line."""
    encode = each_planner.tokenizer.encode
    for one, other in pairwise((*each_planner.alphabet, each_planner.alphabet[0])):
        for lines in (
            (answer_line(1, one.text), answer_line(1, other.text)),
            (option_line(one.text, "1"), option_line(other.text, "1")),
        ):
            tokens = [encode(line) for line in lines]
            assert [(a, b) for a, b in zip(*tokens, strict=True) if a != b] == [(one.token_id, other.token_id)]


@given(texts=st.lists(st.text(max_size=12), min_size=2, max_size=6, unique_by=lambda text: " ".join(text.split())))
def test_labels_stand_in_the_prompt_as_single_tokens(each_planner: Planner, texts: list[str]) -> None:
    """Whatever the options around them say: with other labels the same text has other tokens there, and only there."""
    described = [{"const": number, "title": f"{number} {text}"} for number, text in enumerate(texts)]
    asked = each_planner.plan(rubric(a={"title": texts[0], "oneOf": described}, b=REFILL)).questions
    alphabet, count = each_planner.alphabet, len(texts)
    some, others = (alphabet[start : start + count + 2] for start in (0, len(alphabet) - count - 2))
    one, other = (
        each_planner.tokenizer.encode(questions_text(asked, (labels[:count], labels[count:])))
        for labels in (some, others)
    )
    assert [(a, b) for a, b in zip(one, other, strict=True) if a != b] == [
        (a.token_id, b.token_id) for a, b in zip(some, others, strict=True)
    ]


def test_every_label_fits_every_slot(each_planner: Planner) -> None:
    """Lines 1 to 64, every label: the text with it, tokenised whole, is the template with its token at the slots."""
    tokenizer, alphabet = each_planner.tokenizer, each_planner.alphabet
    canvases = (
        build_canvas(tokenizer, alphabet, 1, MOST_LINES),
        *fill_canvases(tokenizer, alphabet, 1, MOST_LINES, each_planner.canvas_length),
        *(build_canvas(tokenizer, alphabet, number, 1) for number in range(1, MOST_LINES + 1)),
    )
    for canvas in canvases:
        for label in alphabet:
            filled = list(canvas.token_ids)
            for slot in canvas.slots:
                filled[slot] = label.token_id
            assert list(tokenizer.encode(canvas_text(label.text, canvas.first, len(canvas.slots)))) == filled[:-2]


@given(data=st.data(), lines=st.integers(1, 20), first=st.integers(1, 10_000))
def test_labels_of_a_canvas_do_not_touch(each_planner: Planner, data: st.DataObject, lines: int, first: int) -> None:
    """Another label at every slot, lines of any numbers: each is the token of its own slot."""
    canvas = build_canvas(each_planner.tokenizer, each_planner.alphabet, first, lines)
    labels = data.draw(st.lists(st.sampled_from(each_planner.alphabet), min_size=lines, max_size=lines))
    filled = list(canvas.token_ids)
    for slot, label in zip(canvas.slots, labels, strict=True):
        filled[slot] = label.token_id
    text = "".join(answer_line(number, label.text) for number, label in enumerate(labels, start=first))
    assert list(each_planner.tokenizer.encode(text)) == filled[:-2]


def test_a_canvas_says_what_it_should(
    each_planner: Planner, each_tokenizer: CheckpointTokenizer, backend: Backend, tokenizer_name: str
) -> None:
    """Numbered lines, a slot each; then the end of the turn and one pad. Slots and what is between them tile it."""
    canvases = tuple(fill_canvases(each_tokenizer, each_planner.alphabet, 1, MOST_LINES, each_planner.canvas_length))
    ending = [each_tokenizer.turn_end_token_id, each_tokenizer.pad_token_id]
    ends = backend.decode(ending, skip_special_tokens=False)
    assert [len(canvas.slots) for canvas in canvases] == LINES[tokenizer_name]
    for canvas in canvases:
        numbers = range(canvas.first, canvas.first + len(canvas.slots))
        text = "".join(f"{number}: A\n" for number in numbers)
        assert backend.decode(list(canvas.token_ids), skip_special_tokens=False) == text + ends
        assert list(canvas.token_ids) == [*each_tokenizer.encode(text), *ending]
        starts = (0, *(slot + 1 for slot in canvas.slots))
        pieces = zip(starts, (*canvas.slots, canvas.width), strict=True)
        between = [backend.decode(list(canvas.token_ids[a:b]), skip_special_tokens=False) for a, b in pieces]
        assert between == [f"{canvas.first}:", *(f"\n{number}:" for number in numbers[1:]), "\n" + ends]
        assert set(canvas.token_ids) & each_tokenizer.control_token_ids == set(ending)


def test_the_most_options_of_a_question(each_planner: Planner) -> None:
    """S11: every label before its option, in order, and read in parts of at most 128."""
    most = len(each_planner.alphabet)
    plan = each_planner.plan(rubric(a={"title": "0", "enum": list(range(most))}))
    token_ids = [label.token_id for label in each_planner.alphabet]
    prompt = each_planner.tokenizer.encode(questions_text(plan.questions, plan.labels))
    assert [token_id for token_id in prompt if token_id in token_ids] == token_ids
    parts = [slot.label_token_ids for branch in plan.branches for slot in branch.slots]
    assert parts == [tuple(part) for part in (token_ids[:MAX_LABELS_PER_READ], token_ids[MAX_LABELS_PER_READ:]) if part]


def hostile_request(text: str) -> tuple[Any, Any, str]:
    """A text in state, rubric and instructions: wherever it is shown."""
    option = {"title": text, "description": text}
    asked = {
        "one": {"title": text, "description": text, "oneOf": [{"const": 0, **option}, {"const": text}]},
        "several": {"title": text, "type": "array", "items": {"enum": [text, "other"]}},
        "inside": {"type": "object", "title": text, "properties": {text: {"type": "boolean", "examples": [text]}}},
        text: {"enum": [text, 1], "default": text},
    }
    state = [{"role": text, "content": f"{text}\n{text}"}]
    return {**rubric(**asked), "title": text, "description": text}, state, text


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_whole_prompts_have_the_templates_control_tokens_alone(
    each_planner: Planner, each_tokenizer: CheckpointTokenizer, control_texts: list[str], layout: Layout, order: Order
) -> None:
    """Every special token in every place of a request: nothing of it is one in prompt, suffixes or canvas templates."""
    template = each_tokenizer.chat_template
    head, middle, tail = (controls(each_tokenizer, part) for part in (template.head, template.middle, template.tail))
    for text in (*control_texts, "".join(control_texts), "\n".join(control_texts)):
        schema, state, instructions = hostile_request(text)
        plan = each_planner.plan(schema, instructions, layout=layout, order=order)
        prompt = each_planner.seed_read(plan, state_text(state), None).prompt_token_ids
        is_isolated = layout is Layout.ISOLATED
        assert controls(each_tokenizer, prompt) == [*head, *middle, *([] if is_isolated else tail)]
        for branch in plan.branches:
            assert controls(each_tokenizer, branch.suffix_token_ids) == (tail if is_isolated else [])
            assert controls(each_tokenizer, branch.canvas.token_ids[:-2]) == []


@given(text=st.text(max_size=30), pieces=st.lists(st.sampled_from(PIECES), max_size=8), way=st.sampled_from(WAYS))
def test_no_text_adds_a_control_token_to_a_prompt(
    each_planner: Planner, text: str, pieces: list[str], way: tuple[Layout, Order]
) -> None:
    """Nor where texts of a caller meet each other and the template: forged turns cut in two between them."""
    layout, order = way
    asked = rubric(a={"title": text.join(pieces), "enum": ["".join(pieces[:4]) + text, f"2{text}", 1]})
    plan = each_planner.plan(asked, "".join(pieces[4:]), layout=layout, order=order)
    state = "".join(pieces[2:]) + text
    prompt = each_planner.seed_read(plan, state_text(state), None).prompt_token_ids
    template, tokenizer = each_planner.tokenizer.chat_template, each_planner.tokenizer
    placed = [*template.head, *template.middle, *template.tail]
    whole = (*prompt, *plan.branches[0].suffix_token_ids)
    assert [id_ for id_ in whole if id_ in tokenizer.control_token_ids] == [
        id_ for id_ in placed if id_ in tokenizer.control_token_ids
    ]
