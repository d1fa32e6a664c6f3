"""A handler that is not ready puts its run off: the run waits again, and this uses up no retry."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from scheduling.core import run_sentences, wait_sentences
from scheduling.core.backoff import seconds_of
from scheduling.core.outcome import Failed, Outcome, Snoozed

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=1)
"""A longer snooze ends after this time. The handler looks again, and may snooze again."""

MOST_SNOOZES = 1_000
"""After so many snoozes, the execution goes to the failed inbox. So a run that is never ready does not wait unseen."""

NOT_READY = wait_sentences.NOT_READY.format()


class Snooze(Exception):
    """A handler raises this exception if it is not ready, for example because a file has not arrived yet.

    Args:
        seconds: how long the run waits, as a number of seconds or a timedelta; at least `SHORTEST`, at most `LONGEST`.
        until: the instant until which the run waits, instead of `seconds`; a datetime with a time zone.
        reason: a sentence for operators.

    Raises:
        TypeError: neither or both of `seconds` and `until` are given, or one has another type.
        ValueError: `seconds` is no number (NaN), or `until` has no time zone.
    """

    def __init__(
        self,
        seconds: float | timedelta | None = None,
        *,
        until: datetime | None = None,
        reason: str = NOT_READY,
    ) -> None:
        super().__init__(reason)
        if (seconds is None) == (until is None):
            raise TypeError("Snooze takes either a number of seconds or until=.")
        if until is not None and not isinstance(until, datetime):
            raise TypeError(f"until is a datetime, not {until!r:.50}.")
        if until is not None and until.utcoffset() is None:
            raise ValueError("until has no time zone.")
        self.until, self.seconds = until, seconds_of(seconds)
        if until is None and self.seconds is None:
            raise TypeError(f"Snooze takes a number of seconds or a timedelta, not {seconds!r:.50}.")
        if self.seconds is not None and math.isnan(self.seconds):
            raise ValueError("The seconds of Snooze are no number.")

    def wait(self, now: datetime) -> float:
        """How long the run waits, in seconds; negative if the time is over."""
        return (self.until - now).total_seconds() if self.until is not None else self.seconds or 0.0


def bounded_wait(seconds: object) -> timedelta:
    """A wait from `SHORTEST` to `LONGEST`. What is no number is `SHORTEST`: a handler can write any answer."""
    number = seconds_of(seconds)
    if number is None or not number > SHORTEST.total_seconds():
        return SHORTEST
    return timedelta(seconds=min(number, LONGEST.total_seconds()))


def allowed(outcome: Outcome, snoozes: object) -> Outcome:
    """The outcome. If it is a snooze after `MOST_SNOOZES` others, a failure without a retry.

    Args:
        snoozes: how often the execution has snoozed before.
    """
    if not isinstance(outcome, Snoozed) or not isinstance(snoozes, int) or snoozes < MOST_SNOOZES:
        return outcome
    said = run_sentences.TOO_MANY_SNOOZES.format(count=f"{MOST_SNOOZES:,}", reason=outcome.reason)
    return Failed("TooManySnoozes", said, retryable=False, exit_code=outcome.exit_code)
