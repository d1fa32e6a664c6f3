"""What the policies of one schedule let happen to an instant, written anew for the model."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

ANOTHER_START = "it was to start at"


class Window(NamedTuple):
    """A part of a calendar: [begin, end) is excluded. Two windows never touch."""

    begin: int
    end: int
    label: str


class Policy(NamedTuple):
    """A schedule that is due at `start`, and then each `every` seconds. The defaults are those of the software."""

    every: int
    start: int
    active: bool = True
    overlap: str = "allow"
    spread: int = 0
    each: bool = False
    deadline: int | None = None
    missed: str = "latest"
    cap: int = 100
    within: int = 86_400
    since: int | None = None
    until: int | None = None
    most: int | None = None
    failures: int | None = None
    calendar: int | None = None
    hold: bool = False
    after: int | None = None
    span: str = "day"
    late: str = "skip"

    @property
    def is_alone(self) -> bool:
        return self.overlap != "allow"

    def names(self, instant: float) -> bool:
        """Whether it is due at this instant."""
        inside = (self.since or 0) <= instant <= (self.until or instant)
        return inside and instant >= self.start and not (instant - self.start) % self.every

    def instants(self, first: float, last: float) -> range:
        """The instants in [first, last]."""
        first, last = max(first, self.start, self.since or 0), min(last, self.until or last)
        begin = self.start - int(-(first - self.start) // self.every) * self.every
        return range(begin, int(last // 1) + 1, self.every)


def not_due(pk: int, policy: Policy, windows: Iterable[Window], instant: int, assigned: float, kept: bool) -> str:
    if not policy.active or not policy.names(instant):
        return "it was not due"
    window = window_of(windows, instant)
    if window is not None and not policy.hold:
        return f"a calendar excluded it: {window.label}"
    if window is not None and not kept and not is_last_of(policy, window, instant):
        return "a later one that was held with it was to run"
    start = instant if window is None else window.end
    expected = start + offset_of(pk, policy, instant, start)
    return "" if assigned == expected else f"{ANOTHER_START} {expected}"


def offset_of(pk: int, policy: Policy, instant: int, start: int) -> int:
    """By how much an occurrence is spread. The offsets of a schedule never change, so this is written anew here.

    Args:
        start: its instant, or the end of its hold.
    """
    following = instant + policy.every
    has_room = policy.each and (policy.until is None or following <= policy.until)
    seconds = min(policy.spread, following - start) if has_room else policy.spread
    text = f"spread:{pk}:{instant}" if policy.each else f"spread:{pk}"
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") * seconds >> 64


def window_of(windows: Iterable[Window], instant: float) -> Window | None:
    """The window that excludes an instant."""
    return next((window for window in windows if window.begin <= instant < window.end), None)


def is_last_of(policy: Policy, window: Window, instant: int) -> bool:
    """Whether an instant is the one of its hold that runs: it is the last one, and none is due at its end."""
    following = instant + policy.every
    return following > window.end or (policy.until or following) < following
