"""Decides whether a schedule may have two executions that are not over at the same time, and which of them goes on."""

from __future__ import annotations

from enum import StrEnum

from scheduling.core import run_sentences, wait_sentences


class Overlap(StrEnum):
    """What happens when an occurrence is due while an earlier execution of the schedule is not over."""

    ALLOW = "allow"
    """The occurrence runs beside the earlier one."""
    SKIP = "skip"
    """The occurrence is left out, and a skipped execution says so."""
    WAIT = "wait"
    """The occurrence waits until the earlier execution is over. At most one waits: the newest."""
    REPLACE = "replace"
    """The earlier execution is cancelled. When it is over, the occurrence runs."""


def runs_alone(overlap: str, stay_alive: bool) -> bool:
    """Whether at most one execution of a schedule may wait or run. A service runs alone, whatever its policy is."""
    return stay_alive or overlap != Overlap.ALLOW.value


def waits_its_turn(overlap: str, stay_alive: bool) -> bool:
    """Whether an occurrence waits, instead of being left out, while an earlier execution is not over."""
    return not stay_alive and overlap in (Overlap.WAIT.value, Overlap.REPLACE.value)


def cancels_earlier(overlap: str, stay_alive: bool) -> bool:
    """Whether an occurrence lets the earlier execution be cancelled."""
    return not stay_alive and overlap == Overlap.REPLACE.value


def blocked_by(execution: int, overlap: str) -> str:
    """The sentence for an execution that waits until another one of its schedule is over.

    Args:
        execution: the id of the other one.
    """
    if overlap == Overlap.REPLACE.value:
        return wait_sentences.REPLACES.format(execution=execution)
    return wait_sentences.WAITS_FOR_RUN.format(execution=execution)


def replaced_by(execution: int) -> str:
    """Who cancels an execution that a newer one replaces, for "Cancelled by …"."""
    return run_sentences.REPLACED.format(execution=execution)


class Turn(StrEnum):
    """What becomes of a new execution of a schedule that runs alone."""

    STARTS = "starts"
    WAITS = "waits"
    LEFT_OUT = "left_out"


def turn(overlap: str, stay_alive: bool, is_open: bool) -> Turn:
    """What becomes of a new execution.

    Args:
        is_open: whether another execution of the schedule is not over, or waits for its turn.
    """
    if not is_open or not runs_alone(overlap, stay_alive):
        return Turn.STARTS
    return Turn.WAITS if waits_its_turn(overlap, stay_alive) else Turn.LEFT_OUT
