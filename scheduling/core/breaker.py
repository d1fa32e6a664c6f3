"""The circuit breaker of a handler: runs wait while what they need is down, instead of failing one after another.

Closed, all runs start, and their ends are counted. If too many have failed, it opens: due runs wait and use up no
attempt, and one run an interval is let through as a probe. When a probe succeeds, it is half open: the runs that wait
start at a set pace. It is closed when none waits any longer. The example comes from the original contract
(docs/original-contract.md), which sends the runs to the failed queue; here they wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from scheduling.core import wait_sentences as say
from scheduling.core.text import visible_text

BUCKETS = 10
"""The window is counted in so many parts, so a part of it is forgotten at a time."""

LEAST_HALF_OPEN = 2
"""Half open, it opens again on so few runs, because the first of them has shown whether the dependency is back."""

MOST_AT_ONCE = 1_000
"""So many runs at most are let through at one time."""

ERROR_LENGTH = 300
REASON_LENGTH = 200
"""At most so many characters of the last error and of the reason are stored."""

_LONGEST = 86_400.0

_BOUNDS: dict[str, tuple[float, float]] = {
    "share": (0.01, 1.0),
    "window": (1.0, _LONGEST),
    "least": (1, 10_000),
    "probe_every": (1.0, _LONGEST),
    "pace": (0.001, 10_000.0),
}
"""The lowest and the highest value of each attribute."""


class BreakerState(StrEnum):
    """What a breaker does with a run that is due."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True)
class CircuitBreaker:
    """When a handler's runs stop, and how they go on.

    Args:
        share: it opens when so large a share of the runs has failed, above 0 and at most 1.
        window: the runs of the last so many seconds count.
        least: it opens only when at least so many runs have ended within the window.
        probe_every: while it is open, one run is let through every so many seconds.
        pace: after a probe has succeeded, so many waiting runs a second start.

    Raises:
        ValueError: a value is out of bounds; the sentence names it.
    """

    share: float = 0.5
    window: float = 60.0
    least: int = 10
    probe_every: float = 60.0
    pace: float = 1.0

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            number = isinstance(value, int) if name == "least" else isinstance(value, int | float)
            if not number or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"CircuitBreaker: {name} is a number from {low:g} to {high:g}, not {value!r:.50}.")

    def bucket(self, now: datetime) -> int:
        """The number of the part of the window in which an instant lies."""
        return int(now.timestamp() * BUCKETS / self.window)


def breaker_problem(breaker: object) -> str:
    """Why the option `breaker` of a handler cannot be used; empty if it can."""
    if breaker is None or isinstance(breaker, CircuitBreaker):
        return ""
    return f"breaker is a CircuitBreaker, not {breaker!r:.50}."


@dataclass(frozen=True)
class Ends:
    """How runs have ended: how many ended, how many of them failed, and the error of the last failure."""

    ended: int = 0
    failed: int = 0
    error: str = ""

    def plus(self, failed: bool, error: str = "") -> Ends:
        """One more run has ended."""
        return Ends(self.ended + 1, self.failed + failed, error or self.error)


@dataclass(frozen=True)
class Circuit:
    """What is known of one breaker. It is the same for all processes.

    Args:
        since: since when it is in this state.
        counts: for each part of the window its number, how many runs ended in it, and how many of them failed.
        probe: the execution that was let through as a probe, until it has ended.
        probed_at: when the probe was let through, or started.
        granted: the executions that were let through and have not started.
        released: how many runs were let through since it is half open.
        openings: how often it has opened.
        reason: why it has opened, a sentence.
        error: the last error, with its class.
    """

    state: BreakerState = BreakerState.CLOSED
    since: datetime | None = None
    counts: tuple[tuple[int, int, int], ...] = ()
    probe: int | None = None
    probed_at: datetime | None = None
    granted: tuple[int, ...] = ()
    released: int = 0
    openings: int = 0
    reason: str = ""
    error: str = ""

    def lets_start(self, execution: int, rules: CircuitBreaker, now: datetime) -> bool:
        """Whether a run may start. If so, `started` says what is known then."""
        match self.state:
            case BreakerState.CLOSED:
                return True
            case BreakerState.HALF_OPEN:
                return execution in self.granted
        return execution in self.granted or self.probe_is_due(rules, now)

    def started(self, execution: int, now: datetime) -> Circuit:
        """A run that may start has started."""
        if self.state is BreakerState.OPEN:
            return replace(self, probe=execution, probed_at=now, granted=())
        return replace(self, granted=tuple(pk for pk in self.granted if pk != execution))

    def given_back(self, execution: int) -> Circuit:
        """A run that was let through has not started, because it waits for a place.

        Half open, it keeps its turn. A probe does not, so that another run is the next one.
        """
        if self.state is BreakerState.HALF_OPEN and execution not in self.granted:
            return replace(self, granted=(*self.granted, execution)[-MOST_AT_ONCE:])
        return self.without_probe() if self.probe == execution else self

    def next_probe(self, rules: CircuitBreaker) -> datetime | None:
        """When the next probe is let through; None if it is not open."""
        if self.state is not BreakerState.OPEN or self.since is None:
            return None
        try:
            return max(self.since, self.probed_at or self.since) + timedelta(seconds=rules.probe_every)
        except OverflowError:  # plain SQL has stored an instant at the end of the calendar: at once
            return datetime.min.replace(tzinfo=UTC)

    def probe_is_due(self, rules: CircuitBreaker, now: datetime) -> bool:
        """Whether a run may be let through as a probe. The last one has ended."""
        due = self.next_probe(rules)
        return due is not None and self.probe is None and now >= due

    def with_probe(self, execution: int, now: datetime) -> Circuit:
        """A waiting run is let through as the probe."""
        return replace(self, probe=execution, probed_at=now, granted=(execution,))

    def without_probe(self) -> Circuit:
        """The probe has ended and said nothing about the dependency, such as a run that was cancelled."""
        return replace(self, probe=None, granted=())

    def probe_ended(self, *, failed: bool, error: str, rules: CircuitBreaker, now: datetime) -> Circuit:
        """The probe has shown whether the dependency is back."""
        if self.state is not BreakerState.OPEN:
            return self
        if failed:
            return replace(self, probe=None, granted=(), error=_short(error) or self.error)
        counts = ((rules.bucket(now), 1, 0),)
        half_open = replace(self, state=BreakerState.HALF_OPEN, since=now, counts=counts)
        return replace(half_open, probe=None, granted=(), released=0)

    def recorded(self, ends: Ends, rules: CircuitBreaker, now: datetime) -> Circuit:
        """Runs have ended. It opens if too many of them have failed. While it is open, only its probe counts."""
        if self.state is BreakerState.OPEN or not ends.ended:
            return self
        counts = _added(self.counts, ends, rules.bucket(now))
        ended, failed = sum(each[1] for each in counts), sum(each[2] for each in counts)
        least = rules.least if self.state is BreakerState.CLOSED else min(rules.least, LEAST_HALF_OPEN)
        counted = replace(self, counts=counts, error=_short(ends.error) or self.error)
        if not ends.failed or ended < least or failed < rules.share * ended:
            return counted
        # The error stays apart: it may name what only some users may see, and all runs that wait show the reason.
        reason = say.OPENED.format(failed=failed, ended=ended, seconds=f"{rules.window:g}")
        return Circuit(BreakerState.OPEN, now, openings=self.openings + 1, error=counted.error, reason=reason)

    def room(self, rules: CircuitBreaker, now: datetime) -> int:
        """How many more waiting runs may be let through now."""
        if self.state is not BreakerState.HALF_OPEN or self.since is None:
            return 0
        passed = max(0.0, (now - self.since).total_seconds())
        return max(0, min(MOST_AT_ONCE, 1 + math.floor(passed * rules.pace) - self.released))

    def granting(self, executions: Iterable[int]) -> Circuit:
        """Waiting runs are let through."""
        new = tuple(executions)
        return replace(self, granted=(*self.granted, *new)[-MOST_AT_ONCE:], released=self.released + len(new))

    def closed(self, now: datetime) -> Circuit:
        """No run waits any longer."""
        return Circuit(BreakerState.CLOSED, now, openings=self.openings)

    def half_opened(self, now: datetime) -> Circuit:
        """A user says that the dependency is back: the runs that wait start at the pace."""
        return replace(Circuit(BreakerState.HALF_OPEN, now, openings=self.openings), error=self.error)

    def sentence(self, subject: str, rules: CircuitBreaker | None = None) -> str:
        """Why a run waits.

        Args:
            subject: what the breaker belongs to, such as `the worker 'push'`.
        """
        facts = {"subject": subject, "reason": self.reason}
        since = "" if self.since is None else f"{self.since:%Y-%m-%d %H:%M:%S} UTC"
        if self.state is BreakerState.HALF_OPEN:
            return (say.HALF_OPEN_SINCE if since else say.HALF_OPEN).format(**facts, since=since)
        probe = self.next_probe(rules) if rules is not None else None
        if probe is not None:  # it is open since some instant
            return say.OPEN_PROBE.format(**facts, since=since, probe=f"{probe:%H:%M:%S}")
        return (say.OPEN_SINCE if since else say.OPEN).format(**facts, since=since)


def _added(counts: tuple[tuple[int, int, int], ...], ends: Ends, bucket: int) -> tuple[tuple[int, int, int], ...]:
    """The counts of the window with some more ends. A clock that was set back forgets what lies in the future."""
    kept = {number: (ended, failed) for number, ended, failed in counts if bucket - BUCKETS < number <= bucket}
    ended, failed = kept.get(bucket, (0, 0))
    kept[bucket] = ended + ends.ended, failed + ends.failed
    return tuple((number, *kept[number]) for number in sorted(kept))


def _short(error: str) -> str:
    return visible_text(" ".join(error[: 2 * ERROR_LENGTH].split()))[:ERROR_LENGTH]
