"""Finding: one thing that was looked at, what was seen, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """It works, or will again by itself; somebody should know."""
    FAIL = "fail"
    """Runs are late, lost to sight or cannot start until somebody acts."""


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Args:
        check: a short name, stable, for scripts.
        seen: a sentence with the facts; never a password.
        advice: what to do; empty when there is nothing to do.
    """

    check: str
    level: Level
    seen: str
    advice: str = ""


def ok(check: str, seen: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Level.OK, seen)


def warn(check: str, seen: str, advice: str) -> Finding:
    """Worth knowing."""
    return Finding(check, Level.WARN, seen, advice)


def fail(check: str, seen: str, advice: str) -> Finding:
    """Somebody must act."""
    return Finding(check, Level.FAIL, seen, advice)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level among them; OK for none."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)


def some(names: Iterable[str], most: int = 3) -> str:
    """A few names and how many more: `a, b, c and 4 more`."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 schedule`, `2 schedules`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def span(seconds: float) -> str:
    """A length of time as a person says it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def words(error: BaseException) -> str:
    """What a driver says, in a line and without the number that MySQL's puts before it."""
    text = error.args[1] if len(error.args) == 2 and isinstance(error.args[0], int) else error
    return " ".join(str(text).split())
