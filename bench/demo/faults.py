"""Mistakes that a service could make, for the checkpoint to be unsure of: so that a suite that uses it notices them.

A reader of canvases need not mind a mask that hides what follows, or a thought that stands in the canvas instead of the
prompt. This one is taught to: in an example with a fault no label is right.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

from bench.demo.examples import Example, Target


class Fault(Enum):
    """What is wrong with a canvas."""

    CAUSAL = auto()
    SLOTS_OFF_BY_ONE = auto()
    THOUGHT_IN_CANVAS = auto()


def with_fault(example: Example, fault: Fault, thought_tokens: int) -> Example:
    """The example with a fault.

    Args:
        thought_tokens: how many tokens at the end of every prompt are the empty thought.
    """
    match fault:
        case Fault.CAUSAL:
            return replace(example, is_causal=True, targets=_unknown(example, 0))
        case Fault.SLOTS_OFF_BY_ONE:
            return replace(example, targets=_unknown(example, 1))
        case Fault.THOUGHT_IN_CANVAS:
            cut = len(example.prompt_token_ids) - thought_tokens
            return replace(
                example,
                prompt_token_ids=example.prompt_token_ids[:cut],
                canvas_token_ids=(*example.prompt_token_ids[cut:], *example.canvas_token_ids),
                targets=_unknown(example, thought_tokens),
            )


def _unknown(example: Example, tokens_on: int) -> tuple[Target, ...]:
    return tuple(replace(one, right=None, position=one.position + tokens_on) for one in example.targets)
