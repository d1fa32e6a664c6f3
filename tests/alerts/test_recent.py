"""The newest runs of schedules are those that a new query finds, although ended and open ones are not read again."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.alerts.look import BESIDE_FAILURES, Look
from scheduling.alerts.memory import Memory
from scheduling.alerts.runs import recent_runs
from scheduling.alerts.wanted import Wanted
from scheduling.core.alert_rules import RuleKind
from scheduling.models import SchedulerExecution
from tests.factories import SchedulerExecutionFactory, SchedulerFactory
from tests.hostile.fuzz import choose_seed
from tests.support import NOON

pytestmark = pytest.mark.django_db

COUNT = 3 + BESIDE_FAILURES
STAY = ("succeeded", "discarded", "skipped")
STATES = ("queued", "claimed", "blocked", "running", "retrying", "succeeded", "failed", "discarded", "skipped")


@pytest.mark.parametrize("kind", [RuleKind.NOT_STARTED, RuleKind.FAILED_IN_A_ROW])
def test_changes_of_runs_are_seen(kind: RuleKind) -> None:
    """The open runs are read for the rule of the first kind only."""
    seed = choose_seed()
    random = Random(seed)
    schedules = [SchedulerFactory().pk for _number in range(4)]
    memory, rules = Memory(), [Wanted(1, "rule", kind, "warning", number=3)]
    for turn in range(60):
        schedule, state = random.choice(schedules), random.choice(STATES)
        rows = SchedulerExecution.objects.filter(scheduler=schedule)
        known = list(rows.values_list("pk", flat=True))
        if not known or random.random() < 0.3:
            SchedulerExecutionFactory(scheduler_id=schedule, state=state, scheduled_at=NOON)
        elif random.random() < 0.1 and len(known) <= COUNT:
            # What a deletion changes in runs that have ended, and which earlier run it brings back into sight, is seen
            # within two minutes (`recent.FRESH`).
            rows.filter(pk=random.choice(known)).exclude(state__in=STAY).delete()
        else:
            rows.filter(pk=random.choice(known)).exclude(state__in=STAY).update(
                state=state, attempt=turn, started_at=NOON + timedelta(seconds=turn)
            )
        look = Look(NOON + timedelta(seconds=turn), memory=memory, wanted=rules)
        assert look.runs_of(schedules) == recent_runs(schedules, COUNT), (seed, turn)


def test_open_runs_that_were_read_are_not_read_again() -> None:
    run = SchedulerExecutionFactory(scheduler=SchedulerFactory(), state="running")
    memory, rules = Memory(), [Wanted(1, "rule", RuleKind.SLOW, "warning", number=3)]
    Look(NOON, memory=memory, wanted=rules).runs_of([run.scheduler_id])
    with CaptureQueriesContext(connection) as queries:
        found = Look(NOON, memory=memory, wanted=rules).runs_of([run.scheduler_id])
    assert [one.pk for one in found[run.scheduler_id]] == [run.pk]
    assert len([query for query in queries if "SELECT" in query["sql"]]) == 2  # open runs, and the newest keys
