"""`up` gives its standalone consumer a slot for each service, and takes no slot away while a service runs."""

from __future__ import annotations

import pytest

from scheduling.management.service_demand import ServiceDemand, services
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


def test_active_services_and_open_runs_of_others_need_a_slot() -> None:
    assert services() == 0
    SchedulerFactory(rare=True)
    active = [SchedulerFactory(rare=True, stay_alive=True) for _ in range(2)]
    ManualExecutionFactory(scheduler=active[0], queue="standalone")  # it is counted once
    assert services() == 2
    dated = SchedulerFactory(rare=True, stay_alive=True, status=False)
    ManualExecutionFactory(scheduler=dated, queue="standalone")
    ManualExecutionFactory(scheduler=None, queue="standalone")
    ManualExecutionFactory(scheduler=dated, queue="standalone", state="cancelled")
    assert services() == 4


def test_the_consumer_keeps_its_slots_until_there_is_no_service() -> None:
    """A consumer with other arguments is started again, and would interrupt every service."""
    demand = ServiceDemand()
    seen = []
    rows = [SchedulerFactory(rare=True, stay_alive=True) for _ in range(2)]
    for row in (None, *rows):
        if row is not None:
            Scheduler.objects.filter(pk=row.pk).update(status=False)
        assert demand._look()
        seen.append(demand.arguments())
    assert seen == [["--concurrency=2"], ["--concurrency=2"], None]
    assert SchedulerExecution.objects.count() == 0
