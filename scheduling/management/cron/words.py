"""The words of a state and of a health in the reader's language.

In English they are the words that options take, such as `--health never_ran` and `--state failed`.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.core.words import language
from scheduling.management.cron.table import Cell, toned
from scheduling.models.labels import HEALTH, STATES


def state(word: str) -> Cell:
    """The state of an execution in its tone."""
    return _said(word, STATES)


def health(word: str) -> Cell:
    """The health of a schedule in its tone."""
    return _said(word, HEALTH)


def _said(word: str, labels: Mapping[str, object]) -> Cell:
    plain = toned(word)
    return plain if language() == "en" or word not in labels else Cell(str(labels[word]), plain.tone)
