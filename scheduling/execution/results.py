"""Reads the stored result of a run."""

from __future__ import annotations

from typing import Any

from scheduling.core.results import decode
from scheduling.models import Attempt


def result_of(execution_id: int, attempt: int) -> Any:
    """What the handler has returned in this attempt; None if nothing is stored."""
    rows = Attempt.objects.filter(execution=execution_id, number=attempt).values_list("result", flat=True)
    return decode(rows.first() or "")
