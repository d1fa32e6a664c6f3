"""Holds the starts of runs against the model: at most one at once, in time, and after the predecessor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from scheduling.core.skip_reasons import PREDECESSOR, SkipReason, kind_of
from scheduling.models import Attempt
from tests.e2e.policy_model import SLACK, WAITS, Model
from tests.e2e.policy_rows import Row
from tests.e2e.policy_rules import Policy, window_of

AFTER_A_KILL = 1.0
"""A child works on for some milliseconds after its consumer was killed or stopped."""
CLOCKS = 0.5
"""The clock of the database server, as a process knows it, may differ by so much from the present one."""
WOKEN = 30.0
"""So long a success may stay unnoticed if the consumer that has recorded it was killed at once."""


class Span(NamedTuple):
    """One attempt, by its own marks."""

    execution: int
    attempt: int
    begin: float
    end: float


def spans(
    directory: Path, name: str, halts: Sequence[tuple[float, set[int]]], recorded: Mapping[tuple[int, int], float]
) -> list[Span]:
    """The attempts of a work, by their begins.

    Args:
        halts: when processes were killed or stopped, and which. Their attempts ended then: what they do when they go on
            is ended within a second.
        recorded: the recorded ends of attempts. They count for those that were ended, because they leave no mark.
    """
    path, begins, ends = directory / f"{name}.txt", dict[tuple[int, int], tuple[float, int]](), {}
    for line in path.read_text().splitlines() if path.exists() else ():
        word, execution, attempt, pid, at = line.split()
        if word == "end":
            ends[int(execution), int(attempt)] = float(at)
        else:
            begins[int(execution), int(attempt)] = float(at), int(pid)
    found = []
    for key, (begin, pid) in begins.items():
        gone = min((at for at, pids in halts if pid in pids and at >= begin - AFTER_A_KILL), default=float("inf"))
        end = ends.get(key, recorded.get(key, float("inf")))
        found.append(Span(*key, begin, max(begin, min(end, gone))))
    return sorted(found, key=lambda span: span.begin)


def latest_time(row: Row) -> float:
    """Until when an occurrence waits for its predecessor: it counts from when it could first have started."""
    return max(row.assigned, row.claimed) + WAITS


class Starts:
    """The starts of all schedules, and what is wrong with them."""

    def __init__(self, model: Model, rows: Sequence[Row]) -> None:
        self._model = model
        self._of: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            self._of[row.schedule].append(row)
        firsts = Attempt.objects.filter(execution__scheduler__in=list(model.stories), number=1)
        self._first = {pk: at.timestamp() for pk, at in firsts.values_list("execution", "started_at")}

    def problems(self, pk: int, found: Sequence[Span]) -> Iterator[str]:
        """A sentence for each start of a schedule that is wrong."""
        own = {row.pk: row for row in self._of[pk]}
        last: Span | None = None
        for span in found:
            row = own[span.execution]
            alone = all(p.is_alone for p in self._model.stories[pk].policies.between(row.claimed, span.begin))
            if last is not None and alone and span.begin < last.end:
                yield f"two at once: {last} and {span}"
            last = span if last is None or span.end > last.end else last
            if span.begin < row.assigned - CLOCKS:
                yield f"{span} began before its time, {row.assigned}"
            if any(begin + SLACK < span.begin < end for begin, end in self._model.stops):
                yield f"{span} began although all work was paused"
        begins = {span.execution: span.begin for span in found if span.attempt == 1}
        for row in own.values():
            if row.trigger == "cron" and row.pk in begins:
                yield from self._of_first(row, begins[row.pk])
            yield from self._lost(row)

    def _of_first(self, row: Row, begin: float) -> Iterator[str]:
        started = self._first.get(row.pk, 0.0)  # what the database compares with the deadline; a mark is made later
        policies = self._model.stories[row.schedule].policies.between(row.at, row.claimed)
        if all(p.deadline and started > row.assigned + p.deadline for p in policies):
            yield f"{row} started {started - row.assigned} s after it was due"
        waiting = self._model.stories[row.schedule].policies.between(row.at, begin)
        if not any(self._follows(p, row, begin) for p in waiting):
            others = [one for p in waiting for one in self._of[p.after or 0] if abs(one.at - row.at) < 2 * WAITS]
            yield f"{row} began at {begin}, before its predecessor had succeeded; by one of {waiting}: {others}"

    def _follows(self, policy: Policy, row: Row, started: float) -> bool:
        # After its latest time, one that has failed may be republished. That never waits.
        if policy.after is None or (policy.late != "skip" and started >= latest_time(row)):
            return True
        return self._succeeded(policy, row, started) <= started

    def _succeeded(self, policy: Policy, row: Row, before: float) -> float:
        """When the predecessor of an occurrence had succeeded; 0 if there was nothing to wait for."""
        assert policy.after is not None
        midnight = datetime.fromtimestamp(row.at, UTC).replace(hour=0, minute=0, second=0).timestamp()
        begin = midnight if policy.span == "day" else row.at - policy.every + 1
        awaited = self._awaited(policy.after, begin, row.at, before)
        if awaited is None:
            return 0.0
        others = self._of[policy.after]
        found = [one.finished for one in others if one.state == "succeeded" and one.at >= awaited]
        if any(one.at <= awaited <= one.claimed and kind_of(one.reason) is SkipReason.OVERLAP for one in others):
            found += [one.finished for one in others if one.state == "succeeded" and one.finished >= awaited]
        return min(found, default=float("inf"))

    def _awaited(self, pk: int, begin: float, end: int, before: float) -> int | None:
        """The last instant in [begin, end] that no calendar has left out. A schedule that others wait for keeps its
        times. If its calendar is edited, the earlier instant counts: less is then asked for."""
        story = self._model.stories[pk]
        policy = story.policies.now
        for at in reversed(policy.instants(max(begin, story.made + SLACK), end)):
            states = self._model.states(pk, at, before)
            if not any(window_of(windows, at) is not None and not one.hold for one, windows in states):
                return at
        return None

    def _lost(self, row: Row) -> Iterator[str]:
        """Whether it waited until its latest time although its predecessor had succeeded long before."""
        policies = self._model.stories[row.schedule].policies.between(row.at, row.finished)
        policy = policies[0]
        is_late = row.error == "PredecessorLate" or row.reason.startswith((PREDECESSOR, "Started at its latest time"))
        if not is_late or len(policies) > 1 or policy.after is None:
            return
        latest = latest_time(row)
        if any(begin < latest and end > latest - WOKEN for begin, end in self._model.outages):
            return
        if self._model.edited(policy.after, row.at - WAITS, latest):
            return
        if 0 < self._succeeded(policy, row, latest) < latest - WOKEN:
            yield f"{row} waited in vain: its predecessor had succeeded"
