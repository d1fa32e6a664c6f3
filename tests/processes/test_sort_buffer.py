"""Rows with large params can be sorted on every database."""

from __future__ import annotations

import pytest

from scheduling.core.database_errors import Verdict, mysql_verdict
from scheduling.models import Scheduler
from tests.factories import SchedulerFactory


@pytest.mark.django_db
def test_schedules_with_large_params_can_be_sorted() -> None:
    first, second = SchedulerFactory(), SchedulerFactory(status=False)
    Scheduler.objects.update(params={"text": "x" * 4_000_000})  # in bytes, the longest text that a form accepts
    assert [row.pk for row in Scheduler.objects.order_by("status", "pk")] == [second.pk, first.pk]


def test_a_full_sort_buffer_is_no_outage() -> None:
    # A producer that waits would wait for ever. Row by row, nothing is sorted.
    assert mysql_verdict(1038) is Verdict.ITEM
