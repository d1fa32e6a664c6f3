"""Holds the rows of schedules against the model: each instant is on record once, with a reason that is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from scheduling.core.skip_reasons import EDITED, HELD_EDITED, SWITCHED_OFF, SkipReason, kind_of
from tests.e2e.policy_counted import Counted
from tests.e2e.policy_model import LATE, SLACK, Model
from tests.e2e.policy_rows import Row
from tests.e2e.policy_rules import Policy
from tests.e2e.policy_starts import latest_time

AROUND = 60
"""A problem tells what has happened so many seconds before and after it."""

ENDS = {"succeeded", "failed", "cancelled", "skipped"}
OF_TIMES = {SkipReason.NO_PRODUCER, SkipReason.TOO_LATE, SkipReason.NOT_CAUGHT_UP, SkipReason.OVER_CAP}
_EXECUTION = re.compile(r"execution (\d+)")


def key_of(instant: int) -> str:
    """The execution key of an instant, as `docs/schedules.md` tells it."""
    at = datetime.fromtimestamp(instant, UTC)
    parts = [at.year, at.month, at.day, at.hour, at.minute, *([at.second] if at.second else [])]
    return f"cron-{'-'.join(map(str, parts))}"


class Accounts:
    """The rows of one schedule, and what is wrong with them."""

    def __init__(self, model: Model, pk: int, rows: Sequence[Row]) -> None:
        self._model, self._story = model, model.stories[pk]
        self._all = {row.pk: row for row in rows}
        self._own = [row for row in rows if row.trigger == "cron"]

    @property
    def _policies(self) -> list[Policy]:
        return self._story.policies.between(0, float("inf"))

    def problems(self) -> Iterator[str]:
        """A sentence for each row, instant or count that is wrong."""
        for row in self._all.values():
            if row.state not in ENDS:
                yield f"{row} has not ended"
            if row.state in ("skipped", "cancelled") and not self._is_reason(row):
                yield f"{row} has no reason that holds; it names {self._named(row)}"
        for row in self._own:
            yield from self._of_row(row)
        yield from self._uncounted()
        yield from self._runs()

    def _of_row(self, row: Row) -> Iterator[str]:
        if row.key != key_of(row.at):
            yield f"{row} has a wrong key"
        if not any(policy.names(row.at) for policy in self._policies) or row.at <= self._story.made - SLACK:
            yield f"{row} was never due"
        if row.is_let_in and (said := self._model.may_start(row.schedule, row.at, row.assigned, row.claimed)):
            states = list(self._model.states(row.schedule, row.at, row.claimed))
            yield f"{row} was let in, but {said}; by one of {states}"

    def _uncounted(self) -> Iterator[str]:
        """Give each instant without a row to a row that may count it. Each row must get as many as it counts."""
        have = {row.at for row in self._own}
        last = self._story.policies.since + SLACK  # it is paused then
        may = {at for policy in self._policies for at in policy.instants(self._story.made - SLACK, last)}
        must = {at for at in may if self._must(at)}
        counted, missing = Counted([row for row in self._own if row.missed > 1], self._is_reason_at), list[int]()
        for at in sorted(must - have):
            if not counted.give(at):
                missing.append(at)
        if missing:
            yield from self._not_on_record(missing)
        for at in sorted(may - must - have):
            counted.give(at)
        for row, number in counted.left():
            yield f"{row} counts {number} more than were due"
            yield from self._around(row.at, int(row.claimed))

    def _not_on_record(self, missing: list[int]) -> Iterator[str]:
        """The instants, and what happened around them."""
        said = ", ".join(f"{at} ({key_of(at)})" for at in missing)
        yield f"these instants of schedule {self._story.pk} are not on record: {said}"
        yield from self._around(missing[0], missing[-1])

    def _around(self, first: int, last: int) -> Iterator[str]:
        """What is on record and was changed in [first, last], and shortly before and after it."""
        begin, end = first - AROUND, last + AROUND
        for row in self._own:
            if begin <= row.at <= end:
                yield f"    {row}"
        for policy in self._story.policies.changes(begin, end):
            yield f"    {policy}"
        for calendar in {policy.calendar for policy in self._policies} - {None}:
            yield from (f"    {one}" for one in self._model.calendars[calendar or 0].changes(begin, end))

    def _must(self, at: int) -> bool:
        around = self._story.policies.between(at, at)
        sure = self._story.made + SLACK < at <= self._story.until - SLACK
        return sure and all(policy.names(at) for policy in around)

    def _runs(self) -> Iterator[str]:
        """The number of runs between two times at which it was resumed, or at which its bound was edited."""
        resumed = [0.0, *self._story.resumed, float("inf")]
        for begin, end in pairwise(resumed):
            number = sum(row.is_let_in and begin < row.claimed <= end for row in self._own)
            bounds = [policy.most for policy in self._story.policies.between(begin, min(end, begin + SLACK))]
            if all(bounds) and number > max(most or 0 for most in bounds):
                yield f"schedule {self._story.pk} has run {number} times since {begin}, not {bounds}"
        for at in {row.claimed for row in self._own if row.is_let_in}:
            together = [row for row in self._own if row.is_let_in and row.claimed == at]
            policies = self._story.policies.between(at, at)
            if len(together) > max(policy.cap if _catches_all(policy) else 1 for policy in policies):
                yield f"these were claimed together: {together}"

    def _is_reason(self, row: Row) -> bool:
        if row.trigger == "cron" and row.state == "skipped":
            return self._is_reason_at(row, row.at)
        return row.reason.startswith("Cancelled by ") or self._is_overlap(row, row.at)

    def _is_reason_at(self, row: Row, at: int) -> bool:
        """Whether the reason of a skipped row is right for an instant that it counts."""
        kind, model, decided = kind_of(row.reason), self._model, row.finished
        if kind is SkipReason.PAUSED:
            return model.paused(row.schedule, at) and (row.missed <= 1 or row.reason != SWITCHED_OFF)
        if kind is SkipReason.EXCLUDED:
            return model.excluded(row.schedule, at, decided, False, row.reason)
        if kind is SkipReason.HELD:
            ended = model.edited(row.schedule, at, decided) or not row.reason.endswith(f"{HELD_EDITED}.")
            return ended and model.excluded(row.schedule, at, decided, True, row.reason)
        if row.reason.endswith(f"{EDITED}."):
            return model.edited(row.schedule, at, decided)
        if kind is SkipReason.NO_PRODUCER and model.edited(row.schedule, at, decided):
            return True  # of what no producer has started before the edit, the latest one runs
        return model.may_run(row.schedule, at, decided) and any(
            self._is_of(kind, row, at, policy) for policy in self._story.policies.between(at, decided)
        )

    def _is_of(self, kind: SkipReason, row: Row, at: int, policy: Policy) -> bool:
        """Whether a policy lets an occurrence be left out that no pause, calendar or edit has left out."""
        if kind is SkipReason.OVERLAP:
            return policy.is_alone and self._is_overlap(row, at)
        if kind is SkipReason.EXPIRED:
            return row.missed == 1 and policy.deadline is not None and row.finished >= row.assigned + policy.deadline
        if kind is SkipReason.PREDECESSOR:
            is_late = policy.after is not None and policy.late == "skip" and row.finished >= latest_time(row)
            return row.missed == 1 and is_late
        return kind in OF_TIMES and self._is_missed(kind, row, row.finished - at, policy)

    def _is_missed(self, kind: SkipReason, row: Row, waited: float, policy: Policy) -> bool:
        if kind is SkipReason.TOO_LATE:
            return policy.missed != "none" and waited > policy.within
        if kind is SkipReason.OVER_CAP:
            together = [
                other for other in self._own if other.claimed == row.claimed and kind_of(other.reason) is not kind
            ]
            return _catches_all(policy) and len(together) >= policy.cap and waited >= policy.every
        if kind is SkipReason.NOT_CAUGHT_UP:
            return policy.missed == "none" and waited >= min(policy.every, LATE)
        one_runs = policy.missed == "latest" or (policy.missed == "all" and policy.is_alone)
        return one_runs and waited >= policy.every

    def _named(self, row: Row) -> Row | None:
        """The execution that a reason names."""
        named = _EXECUTION.search(row.reason)
        return self._all.get(int(named[1])) if named else None

    def _is_overlap(self, row: Row, at: int) -> bool:
        """Whether the execution that a reason names was open then, or is the newer one."""
        other = self._named(row)
        if other is None or other.pk == row.pk:
            return False
        if "newer execution" in row.reason:
            return other.pk > row.pk and other.claimed <= row.finished + SLACK
        # A claim takes its time before it waits for the schedule, which another one has locked.
        return other.pk < row.pk and other.claimed <= row.claimed + SLACK and other.finished >= at - SLACK


def _catches_all(policy: Policy) -> bool:
    return policy.missed == "all" and not policy.is_alone
