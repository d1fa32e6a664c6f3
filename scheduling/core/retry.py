"""Whether a failed attempt is tried again, and when: pure arithmetic.

Delay before retry n (from 1) = delay x multiplier^(n-1), capped. Defaults and bounds are the
seeds': 30 s, 60 s, 120 s, then the failed inbox; 1 to 20 attempts, delays of 1 s to 1 h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut

INVALID = "SCHEDULE_RETRY_POLICY_INVALID"
"""The code under which a policy out of bounds is refused."""

MAX_RETRIES = (0, 19)
DELAY_MS = (1_000, 3_600_000)
MULTIPLIER = (1.0, 10.0)


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
        max_retries: attempts after the first, 0 to 19.
        delay_ms: milliseconds before the first retry, 1 000 to 3 600 000.
        multiplier: growth from one delay to the next, 1.0 (linear) to 10.0.
        max_delay_ms: ceiling of a delay, from `delay_ms` to 3 600 000.
        jitter: draw each delay from 50 to 100 % of its value.

    Raises:
        RetryPolicyInvalid: naming the field that is out of bounds.
    """

    max_retries: int = 3
    delay_ms: int = 30_000
    multiplier: float = 2.0
    max_delay_ms: int = 3_600_000
    jitter: bool = False

    def __post_init__(self) -> None:
        _within("max_retries", "Retries", self.max_retries, MAX_RETRIES)
        _within("delay_ms", "The retry delay in milliseconds", self.delay_ms, DELAY_MS)
        _within("multiplier", "The multiplier", self.multiplier, MULTIPLIER)
        _within("max_delay_ms", "The longest delay in milliseconds", self.max_delay_ms, DELAY_MS)
        if self.max_delay_ms < self.delay_ms:
            raise RetryPolicyInvalid(
                "max_delay_ms",
                f"The longest delay ({self.max_delay_ms} ms) must be at least the first delay ({self.delay_ms} ms).",
            )

    def delay(self, retry: int) -> int:
        """Milliseconds before retry `retry` (from 1), without jitter."""
        # A large power overflows float long before it matters: compare in logarithm-free steps.
        delay = float(self.delay_ms)
        for _ in range(retry - 1):
            delay *= self.multiplier
            if delay >= self.max_delay_ms:
                return self.max_delay_ms
        return min(round(delay), self.max_delay_ms)


def _within(field: str, label: str, value: float, bounds: tuple[float, float]) -> None:
    low, high = bounds
    if not low <= value <= high:  # also refuses NaN
        raise RetryPolicyInvalid(field, f"{label} must be from {low} to {high}, not {value}.")


def delays(policy: RetryPolicy) -> list[int]:
    """The un-jittered delays of a policy in milliseconds, one for each retry."""
    return [policy.delay(retry) for retry in range(1, policy.max_retries + 1)]


@dataclass(frozen=True)
class Retry:
    """Try again: `number` is the retry's number from 1, after `delay_ms` milliseconds."""

    number: int
    delay_ms: int


@dataclass(frozen=True)
class GiveUp:
    """Do not try again; `reason` is a sentence for the failed inbox."""

    reason: str


def decide(
    policy: RetryPolicy, retries: int, outcome: Outcome, random: Callable[[], float] = lambda: 1.0
) -> Retry | GiveUp:
    """What follows an attempt that did not succeed.

    Args:
        policy: the policy in force.
        retries: retries made so far since the last (re)publish; 0 after a first attempt.
        outcome: how the attempt ended.
        random: a number in [0, 1) for jitter; only called when the policy asks for it.

    Raises:
        ValueError: for an outcome that is no failure.
    """
    match outcome:
        case Succeeded() | Cancelled() | Interrupted():
            raise ValueError(f"{type(outcome).__name__} is not a failure")
        case Failed(retryable=False):
            return GiveUp("The error says that a retry cannot help.")
        case Failed() | TimedOut() | Crashed():
            pass
    if retries >= policy.max_retries:
        return GiveUp(
            "It is set to no retries." if policy.max_retries == 0 else f"All {policy.max_retries} retries are used."
        )
    number = retries + 1
    if isinstance(outcome, Crashed) and outcome.lost:
        # The lease's length has passed already and the handler is not to blame: waiting
        # again would only delay recovery. It still counts, so a poisonous run ends.
        return Retry(number, 0)
    if isinstance(outcome, Failed) and outcome.retry_after_ms is not None:
        return Retry(number, max(0, min(outcome.retry_after_ms, DELAY_MS[1])))
    delay = policy.delay(number)
    if policy.jitter:
        delay = round(delay * (0.5 + 0.5 * random()))
    return Retry(number, delay)
