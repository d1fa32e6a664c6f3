"""Decides whether and when a failed attempt is tried again.

The delay before retry n (n = 1, 2, ...) is delay x multiplier^(n-1), up to a maximum. By default there are three
retries, after 30, 60 and 120 s, and then the execution goes to the failed inbox. A policy has 0 to 19 retries and
delays of 1 s to 1 h. The defaults and these bounds come from the original contract (docs/original-contract.md).
A handler may name another backoff (`core.backoff`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduling.core import run_sentences as say
from scheduling.core.backoff import Backoff, BackoffInvalid, resolved
from scheduling.core.outcome import (
    Cancelled,
    Crashed,
    Deferred,
    Failed,
    FailedProbe,
    Interrupted,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
)
from scheduling.core.time_spans import spell_time_span
from scheduling.core.words import gettext as _

INVALID = "SCHEDULE_RETRY_POLICY_INVALID"
"""The error code of a policy that is out of bounds."""

MAX_RETRIES = (0, 19)
DELAY_MS = (1_000, 3_600_000)
BOUNDS: dict[str, tuple[float, float]] = {
    "max_retries": MAX_RETRIES,
    "delay_ms": DELAY_MS,
    "multiplier": (1.0, 10.0),
    "max_delay_ms": DELAY_MS,
}
"""The lowest and the highest value of each numeric attribute of a policy."""


class RetryPolicyInvalid(ValueError):
    """A retry policy is out of bounds. `code` is SCHEDULE_RETRY_POLICY_INVALID."""

    code = INVALID

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class RetryPolicy:
    """How often and when a failed attempt is tried again.

    Args:
        max_retries: attempts after the first.
        delay_ms: milliseconds before the first retry.
        multiplier: each delay is the previous delay times this number; 1.0 keeps the delay constant.
        max_delay_ms: the maximum delay in milliseconds, at least `delay_ms`.
        jitter: whether each delay is chosen at random between 50 and 100 % of its value.
        backoff: how the delays grow. `"constant"`: each is `delay_ms`. `"linear"`: the delay before retry n is n times
            `delay_ms`. `"exponential"`: see `multiplier`. A list has the delays in seconds, and its last one is that of
            all further retries. A function gets the number of the retry, from 1, and returns seconds; it is called once
            for each possible retry, when the policy is made. With a list or a function, `delay_ms` is the first delay.

    `problem` is a sentence if the backoff cannot be used. The policy is then exponential, so that one mistake stops
    neither the other handlers nor the process; `manage.py check` reports it.

    Raises:
        RetryPolicyInvalid: another field is out of bounds; the error names the field.
    """

    max_retries: int = 3
    delay_ms: int = 30_000
    multiplier: float = 2.0
    max_delay_ms: int = DELAY_MS[1]
    jitter: bool = False
    backoff: Backoff = "exponential"
    problem: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._resolve_backoff()
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            kinds = (int, float) if isinstance(low, float) else (int,)  # SQLite stores any type in any column
            if type(value) not in kinds or not low <= value <= high:  # also refuses NaN
                facts = {"low": spelled(name, low), "high": spelled(name, high), "value": spelled(name, value)}
                raise RetryPolicyInvalid(name, _bounds_said(name).format(**facts))
        if self.max_delay_ms < self.delay_ms:
            longest, first = spelled("max_delay_ms", self.max_delay_ms), spelled("delay_ms", self.delay_ms)
            said = _("The longest delay ({longest}) must be at least the first delay ({first}).")
            raise RetryPolicyInvalid("max_delay_ms", said.format(longest=longest, first=first))

    def _resolve_backoff(self) -> None:
        if self.backoff == "exponential":
            return
        try:
            found = resolved(self.backoff, MAX_RETRIES[1], DELAY_MS[0] / 1000, DELAY_MS[1] / 1000)
        except BackoffInvalid as error:
            object.__setattr__(self, "problem", f"{error}.")
            found = "exponential"
        object.__setattr__(self, "backoff", found)
        if isinstance(found, tuple):
            object.__setattr__(self, "delay_ms", round(found[0] * 1000))

    def delay(self, retry: int) -> int:
        """The delay before a retry in milliseconds, without jitter. The first retry has the number 1."""
        if isinstance(self.backoff, tuple):
            steps: tuple[float, ...] = self.backoff  # type: ignore[assignment]  # `resolved` has made them seconds
            return min(round(steps[min(retry, len(steps)) - 1] * 1000), self.max_delay_ms)
        if self.backoff == "linear":
            return min(self.delay_ms * retry, self.max_delay_ms)
        if self.multiplier == 1.0 or self.backoff == "constant":
            return self.delay_ms
        # The delay grows step by step, because a large power would overflow a float.
        delay = float(self.delay_ms)
        for _retry in range(retry - 1):
            delay *= self.multiplier
            if delay >= self.max_delay_ms:
                return self.max_delay_ms
        return min(round(delay), self.max_delay_ms)


def _bounds_said(name: str) -> str:
    return {
        "max_retries": _("Retries must be from {low} to {high}, not {value}."),
        "delay_ms": _("The retry delay must be from {low} to {high}, not {value}."),
        "multiplier": _("The multiplier must be from {low} to {high}, not {value}."),
        "max_delay_ms": _("The longest delay must be from {low} to {high}, not {value}."),
    }[name]


def spelled(name: str, value: object) -> str:
    """The value of an attribute as text: a delay with its unit."""
    usable = name.endswith("_ms") and type(value) is int and 0 <= value < 10**15
    return spell_time_span(value) if usable else f"{value!s:.50}"  # type: ignore[arg-type]


def delays(policy: RetryPolicy) -> list[int]:
    """The delays of a policy in milliseconds, without jitter, one for each retry."""
    return [policy.delay(retry) for retry in range(1, policy.max_retries + 1)]


@dataclass(frozen=True)
class Retry:
    """Try again after `delay_ms` milliseconds. `number` is the number of the retry, counted from 1."""

    number: int
    delay_ms: int


@dataclass(frozen=True)
class GiveUp:
    """Do not try again; `reason` is a sentence for the failed inbox."""

    reason: str


def decide(
    policy: RetryPolicy, retries: int, outcome: Outcome, random: Callable[[], float] = lambda: 1.0
) -> Retry | GiveUp:
    """Decide whether an attempt that did not succeed is tried again.

    Args:
        policy: the retry policy of the execution.
        retries: how many retries were already made. A republish sets this number back to 0.
        outcome: how the attempt ended.
        random: returns a number in [0, 1) for jitter. The function is called only if the policy has jitter.

    Raises:
        ValueError: the outcome is not a failure.
    """
    match outcome:
        case Succeeded() | Cancelled() | Interrupted() | Deferred() | Snoozed() | FailedProbe() | Skipped():
            raise ValueError(f"{type(outcome).__name__} is not a failure")
        case Failed(retryable=False):
            return GiveUp(say.NO_HELP.format())
    if retries >= policy.max_retries:
        used = {0: say.NO_RETRIES, 1: say.ONLY_RETRY_USED}.get(policy.max_retries, say.RETRIES_USED)
        return GiveUp(used.format(count=policy.max_retries))
    number = retries + 1
    if isinstance(outcome, Crashed) and outcome.lost:
        # The execution has already waited until the lease ran out, so a further delay would only slow the recovery. The
        # new attempt counts as a retry. Otherwise a run that kills its consumers would be tried again for ever.
        return Retry(number, 0)
    if isinstance(outcome, Failed) and outcome.retry_after_ms is not None:
        return Retry(number, max(0, min(outcome.retry_after_ms, DELAY_MS[1])))
    return Retry(number, jittered(policy, number, random))


def jittered(policy: RetryPolicy, number: int, random: Callable[[], float]) -> int:
    """The delay before a retry in milliseconds. With jitter, it is between 50 and 100 % of the policy's delay."""
    delay = policy.delay(number)
    return round(delay * (0.5 + 0.5 * random())) if policy.jitter else delay
