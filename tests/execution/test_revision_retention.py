"""A revision stays for a year, and as long as an execution may name it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.execution.retention import prune
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.retention.revision_records import remove_revisions
from scheduling.models import Scheduler, ScheduleRevision
from tests.factories import SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


def edited(times: int) -> Scheduler:
    """A schedule with this number of revisions, which are 400 days old."""
    row = SchedulerFactory()
    for number in range(1, times):
        row.time_limit = number
        row.save()
    ScheduleRevision.objects.filter(schedule=row.pk).update(at=clock.now() - timedelta(days=400))
    return row


def numbers(row: Scheduler) -> list[int]:
    return list(ScheduleRevision.objects.filter(schedule=row.pk).order_by("number").values_list("number", flat=True))


def test_where_each_old_revision_is_the_only_one_none_is_removed_and_the_cleanup_goes_on() -> None:
    row = edited(1)
    assert prune(clock.now()).revisions == 0
    assert numbers(row) == [1]


def test_what_no_execution_names_is_removed_after_a_year() -> None:
    unused, named, young, gone = edited(4), edited(4), edited(2), edited(3)
    SchedulerExecutionFactory(scheduler=named, revision=None)
    SchedulerExecutionFactory(scheduler=named, revision=3)
    SchedulerExecutionFactory(scheduler=named, revision=4)
    ScheduleRevision.objects.filter(schedule=young.pk).update(at=clock.now() - timedelta(days=364))
    key = gone.pk
    gone.delete()
    ScheduleRevision.objects.filter(schedule=key).update(at=clock.now() - timedelta(days=400))
    done = prune(clock.now(), dry_run=True)
    assert (done.revisions, numbers(unused)) == (3 + 2 + 4, [1, 2, 3, 4])
    assert prune(clock.now()).revisions == 9
    assert [numbers(row) for row in (unused, named, young)] == [[4], [3, 4], [1, 2]]
    assert not ScheduleRevision.objects.filter(schedule=key).exists()


@pytest.mark.any_database
def test_batches_reach_all_of_them() -> None:
    rows = [edited(4) for _number in range(3)]
    done = Pruned()
    remove_revisions(clock.now() - timedelta(days=365), done, dry_run=False, batch=2)
    assert done.revisions == 9
    assert [numbers(row) for row in rows] == [[4]] * 3
