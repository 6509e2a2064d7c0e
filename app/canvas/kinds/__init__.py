"""The kinds of question. A kind is one class in one module here, with one entry in `KINDS`.

The first that claims a schema gets it; `Choice`, the last, takes whatever is left.
"""

from __future__ import annotations

from app.canvas.kinds.boolean import Boolean
from app.canvas.kinds.choice import Choice
from app.canvas.kinds.probability import Probability
from app.canvas.kinds.score import Score
from app.canvas.kinds.selection import Selection
from app.canvas.question import Question

KINDS: tuple[type[Question], ...] = (Selection, Score, Probability, Boolean, Choice)
