"""What the policies of a schedule let happen to an instant, by plain arithmetic. It uses no rule of the software.

All times are seconds since 1970. While a change is on its way to the processes, both its sides count. So an instant is
judged by each policy that may have held between its time and the decision about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Generic, TypeVar

from tests.e2e.policy_rules import ANOTHER_START, Policy, Window, is_last_of, not_due, window_of

SLACK = 5.0
"""A loaded machine decides by so much later. A change may be visible by so much later than its time says."""
LATE = 60.0
"""Without catching up, an occurrence that has been due for longer does not run."""
WAITS = 60
"""So long an occurrence waits for its predecessor, in whole seconds. It is the shortest time that may be chosen."""

Value = TypeVar("Value")


class History(Generic[Value]):
    """The values that something has had."""

    def __init__(self, value: Value) -> None:
        self._changes: list[tuple[float, float, Value]] = [(0.0, 0.0, value)]

    @property
    def now(self) -> Value:
        return self._changes[-1][2]

    @property
    def since(self) -> float:
        """When each process knew the last change."""
        return self._changes[-1][1]

    @property
    def is_known(self) -> bool:
        """Whether each process knows the last change."""
        return self.since < float("inf")

    def settle(self, now: float) -> None:
        """Each process knows the last change by now."""
        since, sure, value = self._changes[-1]
        self._changes[-1] = since, min(sure, now), value

    def change(self, since: float, sure: float, value: Value) -> None:
        """The value was changed at `since` at the earliest, and each process knows it at `sure`."""
        self._changes.append((since, sure, value))

    def between(self, first: float, last: float) -> list[Value]:
        """The values that may have held in [first, last]."""
        sures = [sure for _since, sure, _value in self._changes[1:]] + [float("inf")]
        return [
            value for (since, _sure, value), over in zip(self._changes, sures, strict=True)
            if since <= last + SLACK and over >= first - SLACK
        ]  # fmt: skip

    def changes(self, first: float, last: float) -> list[tuple[float, float, Value]]:
        """The changes in [first, last], and the last one before them: from when, known when, and the value."""
        earlier = [one for one in self._changes if one[0] < first]
        return earlier[-1:] + [one for one in self._changes if first <= one[0] <= last]

    def changed(self, first: float, last: float) -> bool:
        """Whether there may have been a change in [first, last]."""
        return len(self.between(first, last)) > 1


@dataclass
class Story:
    """What has happened to a schedule.

    Args:
        name: the name of its work (`tests.apps.sample.policed`).
        made: the instants after it count. At `until` it is over.
        resumed: when it was resumed, or when the number of its runs was edited.
    """

    pk: int
    name: str
    made: float
    policies: History[Policy]
    until: float = float("inf")
    resumed: list[float] = field(default_factory=list)


@dataclass
class Model:
    """What has happened, and what may follow from it.

    Args:
        outages: from when to when processes did not work.
        stops: from when to when the work of all schedules was paused.
    """

    stories: dict[int, Story] = field(default_factory=dict)
    calendars: dict[int, History[tuple[Window, ...]]] = field(default_factory=dict)
    outages: list[tuple[float, float]] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)

    def is_outage(self, at: float) -> bool:
        """Whether a process did not work at this time, or shortly before or after it."""
        return any(begin < at + SLACK and end > at - SLACK for begin, end in self.outages)

    def states(self, pk: int, first: float, last: float) -> Iterator[tuple[Policy, tuple[Window, ...]]]:
        """The policies and calendars that may have held together in [first, last]."""
        for policy in self.stories[pk].policies.between(first, last):
            known = None if policy.calendar is None else self.calendars[policy.calendar]
            yield from product([policy], [()] if known is None else known.between(first, last))

    def may_start(self, pk: int, instant: int, assigned: float, decided: float) -> str:
        """Why an occurrence may not be let in with this assigned time; empty if it may."""
        said = "it was not due"
        kept = self._kept(pk, instant, decided)
        for policy, windows in self.states(pk, instant, decided):
            said = not_due(pk, policy, windows, instant, assigned, kept)
            if said.startswith(ANOTHER_START) and policy.each and self.edited(pk, instant, decided):
                # One that an edit has kept: the next one comes later than `every`, so it has more room.
                said = "" if instant <= assigned <= instant + policy.spread else said
            if not said and decided - assigned > SLACK + (LATE if policy.missed == "none" else policy.within):
                said = "it was too old"
            if not said:
                break
        return said or ("" if decided >= assigned else "it came before its time")

    def _kept(self, pk: int, instant: int, decided: float) -> bool:
        """Whether an edit may have kept it: it was free before.

        Then it runs, although a later one is due at the end of a hold that the edit has brought. The later one may lie
        before the edit.
        """
        return self.edited(pk, instant, decided) and any(
            policy.active and policy.names(instant) and window_of(windows, instant) is None
            for policy, windows in self.states(pk, instant, decided)
        )

    def may_run(self, pk: int, instant: int, decided: float) -> bool:
        """Whether it was due, and no calendar excluded it: otherwise, only that can be the reason."""
        return any(
            policy.active and policy.names(instant) and (
                (window := window_of(windows, instant)) is None or (policy.hold and is_last_of(policy, window, instant))
            )
            for policy, windows in self.states(pk, instant, decided)
        )  # fmt: skip

    def excluded(self, pk: int, instant: int, decided: float, hold: bool, reason: str) -> bool:
        """Whether a calendar excludes it with this reason."""
        return any(
            policy.hold is hold and (window := window_of(windows, instant)) is not None
            and f"{window.label} (calendar" in reason
            for policy, windows in self.states(pk, instant, decided)
        )  # fmt: skip

    def settled(self, pk: int, instant: int) -> float:
        """Until when a decision about an instant may be pending: it is spread or excluded, or no process worked."""
        found = float(instant)
        for policy, windows in self.states(pk, instant, instant):
            window = window_of(windows, instant)
            begin = instant if window is None else window.end + policy.every
            found = max(found, begin + policy.spread)
        while later := [end for begin, end in self.outages if begin - SLACK <= found + SLACK and end > found]:
            found = max(later)
        return found + SLACK

    def paused(self, pk: int, instant: int) -> bool:
        """Whether a pause may have come before a decision about an instant."""
        found = self.stories[pk].policies.between(instant, self.settled(pk, instant))
        return any(not policy.active for policy in found)

    def edited(self, pk: int, instant: int, decided: float) -> bool:
        """Whether an edit may have come before a decision about an instant."""
        policies = self.stories[pk].policies
        named = {policy.calendar for policy in policies.between(instant, decided)} - {None}
        return policies.changed(instant, decided) or any(
            self.calendars[calendar].changed(instant, decided) for calendar in named if calendar is not None
        )
