"""How the delays of a retry policy grow: by a formula, or as a list or a function of the project says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

FORMULAS = ("constant", "linear", "exponential")
"""The delay stays the same, grows by the first delay each time, or is multiplied each time."""

Delay = float | timedelta

Backoff = str | list[Delay] | tuple[Delay, ...] | Callable[[int], Delay]
"""One of `FORMULAS`, the delays of the retries in seconds, or a function of the retry's number, from 1."""


class BackoffInvalid(ValueError):
    """A backoff cannot be used. The text is a sentence without its full stop."""


def seconds_of(value: object) -> float | None:
    """A number of seconds or a timedelta in seconds; None if the value is neither."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def resolved(backoff: object, retries: int, shortest: float, longest: float) -> str | tuple[float, ...]:
    """The formula, or the delay before each retry in seconds.

    Args:
        retries: the greatest number of retries. A function is called for each of them.
        shortest: the shortest delay in seconds.
        longest: the longest delay in seconds.

    Raises:
        BackoffInvalid: the backoff is of another kind, the function raises, or a delay is out of bounds.
    """
    if isinstance(backoff, str):
        if backoff not in FORMULAS:
            raise BackoffInvalid(f"The backoff {backoff!r:.50} is none of {', '.join(FORMULAS)}")
        return backoff
    if isinstance(backoff, list | tuple):
        if not 1 <= len(backoff) <= retries:
            raise BackoffInvalid(f"The backoff must have 1 to {retries} delays, not {len(backoff)}")
        return tuple(_checked(value, number, shortest, longest) for number, value in enumerate(backoff, 1))
    if not callable(backoff):
        raise BackoffInvalid(f"The backoff must be a name, a list of seconds or a function, not {_shown(backoff)}")
    return tuple(_checked(_answer(backoff, number), number, shortest, longest) for number in range(1, retries + 1))


def _answer(backoff: Callable[[int], object], number: int) -> object:
    try:
        return backoff(number)
    except (Exception, SystemExit) as error:  # code of the project may raise anything
        raise BackoffInvalid(f"The backoff raises {type(error).__name__} for retry {number}") from error


def _checked(value: object, number: int, shortest: float, longest: float) -> float:
    seconds = seconds_of(value)
    if seconds is None or not shortest <= seconds <= longest:  # also refuses NaN
        bounds = f"a number of seconds from {shortest:g} to {longest:g}"
        raise BackoffInvalid(f"The backoff of retry {number} must be {bounds}, not {_shown(value)}")
    return float(seconds)


def _shown(value: object) -> str:
    try:
        return f"{value!r:.50}"
    except (Exception, SystemExit):  # `__repr__` may be code of the project
        return f"a {type(value).__name__}"
