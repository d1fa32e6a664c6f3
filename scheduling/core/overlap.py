"""Decides whether a schedule may have two executions that are not over at the same time."""

from __future__ import annotations

from enum import StrEnum


class Overlap(StrEnum):
    """What happens when an occurrence is due while an earlier execution of the schedule is not over."""

    ALLOW = "allow"
    """The occurrence runs beside the earlier one."""
    SKIP = "skip"
    """The occurrence is left out, and a skipped execution says so."""


def runs_alone(overlap: str, stay_alive: bool) -> bool:
    """Whether at most one execution of a schedule may wait or run. A service runs alone, whatever its policy is."""
    return stay_alive or overlap != Overlap.ALLOW.value
