"""What the rules look at in one evaluation. Rules share what one of them has read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from operator import itemgetter

from scheduling.alerts.brokers import BrokerWatch
from scheduling.alerts.durations import Durations, read_durations
from scheduling.alerts.further_runs import FurtherRuns
from scheduling.alerts.memory import Memory, memory
from scheduling.alerts.reading import readable_rows
from scheduling.alerts.recent import RecentRuns
from scheduling.alerts.repeated import RepeatedQuery
from scheduling.alerts.runs import (
    FAILURES,
    MOST_RUNS,
    NAMED,
    Ended,
    Run,
    just_ended,
    newest_in,
    open_runs,
    reasons_of,
    runs_in,
)
from scheduling.alerts.schedules import Schedule, schedules_by_key
from scheduling.alerts.wanted import RuleProblem, Wanted, span_of
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import Situation, Standing
from scheduling.core.lifecycle import State
from scheduling.models import Process, SchedulerExecution
from scheduling.models.counts import PreparedCounts
from scheduling.models.prepared import ANY_INSTANT
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import in_other_queues, services

__all__ = ["Look", "RuleProblem", "span_of"]

OF_RUNS = (
    RuleKind.NOT_STARTED, RuleKind.NOT_FINISHED, RuleKind.FAILED_IN_A_ROW, RuleKind.SKIPPED, RuleKind.SLOW,
    RuleKind.RETRIED, RuleKind.INBOX,
)  # fmt: skip
"""The kinds that look at the last runs of the schedule that the rule names."""

OF_OPEN_RUNS = (RuleKind.NOT_STARTED, RuleKind.SLOW, RuleKind.RETRIED)
"""The kinds that look at the open runs of all schedules."""

BY_DURATION = (RuleKind.NOT_FINISHED, RuleKind.SLOW)
"""The kinds that ask how long the runs of a schedule usually take."""

BESIDE_FAILURES = 5
"""So many runs of a schedule are read in addition to the failures that a rule counts, because skipped and cancelled
runs may lie between them."""

SKIPS_FOR = timedelta(minutes=1)
"""So long the newest skipped executions are remembered, if there is no newer one. An earlier one may be skipped later
than a newer one: it has waited."""

REASONS_FOR = timedelta(minutes=10)
"""So long the reasons of skips are remembered."""

DURATIONS_FOR = timedelta(minutes=10)
"""So long the usual duration of a schedule is remembered."""

MOST_PROCESSES = 2_000
"""So many of the alive processes are looked at, the newest first."""

MOST_NEW_DURATIONS = 50
"""The durations of so many schedules are read in one evaluation. The others follow in the next one."""


_COUNTED = PreparedCounts({rows: partial(rows, ANY_INSTANT) for rows in (*in_other_queues, services)})
"""These rows depend on no instant."""

_newest_skip = RepeatedQuery(
    lambda _now: SchedulerExecution.objects.in_state(State.SKIPPED).order_by("-pk"), ("pk",), 1, itemgetter(0)
)


@dataclass
class Look:
    """The state of the installation at `now`.

    Args:
        now: the time of the database.
        broker: what this process knows of the broker; None where the database is the queue.
        hold: why this process holds (`processes.guard`): a sentence; empty if it works. While it holds, only the rules
            about it are evaluated, because the database may be a copy.
        memory: what the last evaluation has left.
        wanted: the rules of the evaluation, so that what they need can be read at once.
        standing: the open alerts of each rule, by their keys.
    """

    now: datetime
    broker: BrokerWatch | None = None
    hold: str = ""
    memory: Memory = field(default_factory=lambda: memory)
    wanted: Sequence[Wanted] = ()
    standing: Mapping[int, Mapping[str, Standing]] = field(default_factory=dict)
    _schedules: dict[int, Schedule | None] = field(default_factory=dict)
    _runs: dict[int, list[Run]] = field(default_factory=dict)
    _reasons: dict[int, str] = field(default_factory=dict)
    _new_durations: int = 0

    @cached_property
    def present(self) -> Present:
        """The state that the findings look at. A process whose row cannot be read counts as missing."""
        present = Present(self.now, watched=(), prepared=_COUNTED)
        present.alive = readable_rows(Process.objects.alive(self.now), MOST_PROCESSES)
        return present

    def of_kind(self, *kinds: RuleKind) -> list[Wanted]:
        """The rules of these kinds."""
        return [rule for rule in self.wanted if rule.kind in kinds]

    def alerts_of(self, rules: Iterable[Wanted]) -> list[Standing]:
        """The open alerts of these rules."""
        return [one for rule in rules for one in self.standing.get(rule.pk, {}).values()]

    def alert_that_stays(self, rule: Wanted, key: str) -> Iterator[tuple[Wanted, Situation]]:
        """The open alert with this key, while this evaluation cannot know whether its situation goes on."""
        known = self.standing.get(rule.pk, {}).get(key)
        if known is not None and known.situation is not None:
            yield rule, known.situation

    def schedules(self, keys: Collection[int]) -> dict[int, Schedule]:
        """Those of the schedules that exist and can be read, in this order."""
        if missing := set(keys) - self._schedules.keys():
            self._schedules |= {**dict.fromkeys(missing), **schedules_by_key(missing)}
        return {pk: found for pk in keys if (found := self._schedules[pk]) is not None}

    @cached_property
    def runs_each(self) -> int:
        """So many of the newest runs of a schedule are read at most."""
        return max([3, *(int(rule.number) for rule in self.of_kind(RuleKind.FAILED_IN_A_ROW))]) + BESIDE_FAILURES

    @cached_property
    def further_runs(self) -> FurtherRuns:
        """Looks further back than `runs_of`. Only few schedules need it."""
        return FurtherRuns(self.memory, self.now)

    def runs_of(self, keys: Collection[int]) -> Mapping[int, list[Run]]:
        """The newest runs of each of these schedules, the oldest first. Those of the rules are read at once."""
        if missing := set(keys) - self._runs.keys():
            missing |= {rule.schedule for rule in self.of_kind(*OF_RUNS) if rule.schedule is not None}
            known = self.open_runs if self.of_kind(*OF_OPEN_RUNS) else {}
            recent = RecentRuns(self.memory, self.now, self.runs_each, known)
            self._runs |= recent.of(missing - self._runs.keys())
        return {pk: self._runs[pk] for pk in keys}

    def reasons(self, runs: Collection[Run]) -> Mapping[int, str]:
        """Why these runs wait or were skipped, by their keys."""
        if missing := [run for run in runs if run.pk not in self._reasons]:
            self._reasons |= reasons_of(missing)
        return self._reasons

    def reasons_of_skips(self, runs: Collection[Run]) -> Mapping[int, str]:
        """Why these executions were skipped. This does not change."""
        known: dict[int, str] = self.memory.get("reasons of skips", self.now, REASONS_FOR, dict)
        if missing := [run for run in runs if run.pk not in known]:
            known |= reasons_of(missing)
        return known

    @cached_property
    def failures(self) -> list[Run]:
        """The newest failures of the inbox, the newest first."""
        return newest_in(FAILURES, State.FAILED)

    @cached_property
    def discarded(self) -> list[Run]:
        """The newest failures that were discarded, the newest first. They are remembered for a minute."""
        return self.memory.get("discarded", self.now, SKIPS_FOR, lambda: newest_in(NAMED, State.DISCARDED))

    def failures_of_group(self, group: int) -> list[Run]:
        """The newest failures of a user group in the inbox, the newest first."""
        if len(self.failures) < MOST_RUNS:
            return [run for run in self.failures if run.group_id == group]
        rows = SchedulerExecution.objects.in_state(State.FAILED).filter(group=group).order_by("-pk")
        key = ("failures of group", group)
        return self.memory.get(key, self.now, SKIPS_FOR, lambda: runs_in(rows, NAMED, MOST_RUNS))

    @cached_property
    def skips(self) -> list[Run]:
        """The newest skipped executions, the newest first."""
        newest = _newest_skip.rows()
        known: list[Run] | None = self.memory.known("skips", self.now, SKIPS_FOR)
        if known is None or newest != [run.pk for run in known[:1]]:
            known = newest_in(NAMED, State.SKIPPED)  # a skipped execution stays skipped
            self.memory.keep("skips", self.now, known)
        return known

    @cached_property
    def waiting(self) -> list[Run]:
        """The oldest executions that wait, without those that wait for a retry."""
        return self._in_states(State.QUEUED, State.CLAIMED, State.BLOCKED)

    @cached_property
    def running(self) -> list[Run]:
        """The oldest executions that run."""
        return self._in_states(State.RUNNING)

    @cached_property
    def retrying(self) -> list[Run]:
        """The oldest executions that wait for a retry."""
        return self._in_states(State.RETRYING)

    @cached_property
    def open_runs(self) -> dict[int, Run]:
        """The oldest executions in each open state, by their keys."""
        return {run.pk: run for run in open_runs()}

    def _in_states(self, *states: State) -> list[Run]:
        return [run for run in self.open_runs.values() if run.state in states]

    @cached_property
    def ended(self) -> list[Ended]:
        """The attempts that have just ended."""
        return just_ended(self.now)

    def durations_of(self, schedules: Iterable[int]) -> dict[int, Durations]:
        """The durations of the last successful runs of the schedules.

        Those of at most `MOST_NEW_DURATIONS` schedules are read, those with an alert first. A schedule whose durations
        are not read yet is missing.
        """
        found = {pk: self._known_durations(pk) for pk in set(schedules)}
        unknown = [pk for pk, known in found.items() if known is None]
        with_alert = {one.situation.schedule for one in self.alerts_of(self.of_kind(*BY_DURATION)) if one.situation}
        missing = sorted(unknown, key=lambda pk: (pk not in with_alert, pk)) if unknown else []
        chosen = missing[: MOST_NEW_DURATIONS - self._new_durations]
        self._new_durations += len(chosen)
        read = read_durations(chosen)
        for pk in chosen:
            found[pk] = read.get(pk, Durations())
            self.memory.keep(("durations", pk), self.now, found[pk])
        return {pk: known for pk, known in found.items() if known is not None}

    def _known_durations(self, schedule: int) -> Durations | None:
        known: Durations | None = self.memory.known(("durations", schedule), self.now, DURATIONS_FOR)
        return known
