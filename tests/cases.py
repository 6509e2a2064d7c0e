"""Requests that several tests ask: rubrics of every kind and size, states of every shape and length."""

from __future__ import annotations

from typing import Any

HEADACHE: dict[str, Any] = {
    "state": [
        {"role": "user", "content": "I have had a headache for three days and the tablets do not help."},
        {"role": "assistant", "content": "I am sorry to hear that. Is it getting worse?"},
        {"role": "user", "content": "Yes, since this morning."},
    ],
    "rubric": {
        "type": "object",
        "properties": {
            "topic": {
                "title": "Topic",
                "description": "What the member writes about",
                "enum": ["billing", "symptoms", "scheduling"],
            },
            "urgency": {
                "title": "Urgency",
                "oneOf": [
                    {"const": "routine", "description": "can wait for days"},
                    {"const": "soon", "description": "within a day or two"},
                    {"const": "urgent", "description": "now"},
                ],
            },
        },
        "required": ["topic", "urgency"],
    },
}

TOPIC = {"title": "Topic", "enum": ["billing", "symptoms", "scheduling", "pharmacy"]}
REFILL = {"type": "boolean", "title": "Does the member want a refill?"}
PAIN = {"type": "integer", "minimum": 0, "maximum": 4, "title": "How bad is the pain?"}
MOOD = {
    "title": "Mood",
    "oneOf": [
        {"const": 1, "title": "calm"},
        {"const": 2, "title": "worried", "description": "afraid of what may come"},
        {"const": None, "title": "cannot be told"},
    ],
}
LETTERS = {"enum": [f"option {n}" for n in range(26)]}
SCALAR = {"enum": ["text", 1, 2.5, True, None]}

STATES: tuple[Any, ...] = (
    "My knee hurts.",
    "Where is my bill? I have been waiting for two weeks and nobody calls me back!",
    {"message": "please renew my tablets", "age": 61, "plan": None},
    ["first line", "second line"],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, how can I help?"}],
    "ÄÖÜ ß 東京 🙂 \t tabs\nand lines",
    "word " * 60,
)


def rubric(**properties: Any) -> dict[str, Any]:
    """A rubric of these questions."""
    return {"type": "object", "properties": properties}


RUBRICS: tuple[dict[str, Any], ...] = (
    rubric(topic=TOPIC),
    rubric(refill=REFILL),
    rubric(pain=PAIN),
    rubric(mood=MOOD),
    rubric(many=LETTERS),
    rubric(scalar=SCALAR),
    rubric(topic=TOPIC, refill=REFILL, pain=PAIN, mood=MOOD),
    rubric(**{f"q{n}": REFILL for n in range(14)}),
    rubric(first=LETTERS, second=MOOD, third=REFILL),
)

# 27 requests: every rubric with three of the states.
REQUESTS: tuple[dict[str, Any], ...] = tuple(
    {"rubric": asked, "state": STATES[(i + 2 * j) % len(STATES)], "policy": {"seed": 100 * i + j}}
    for i, asked in enumerate(RUBRICS)
    for j in range(3)
)

# Prompt and canvas are longer than the demo checkpoint's sliding window of 512 tokens.
LONG_REQUESTS: tuple[dict[str, Any], ...] = tuple(
    {"rubric": asked, "state": "My knee hurts when I walk. " * 80, "policy": {"seed": seed}}
    for seed, asked in enumerate((rubric(topic=TOPIC, pain=PAIN), rubric(**{f"q{n}": REFILL for n in range(9)})))
)
