"""Rows with large params can be sorted on every database."""

from __future__ import annotations

import pytest

from scheduling.models import Scheduler
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db


def test_schedules_with_large_params_can_be_sorted() -> None:
    first, second = SchedulerFactory(), SchedulerFactory(status=False)
    Scheduler.objects.update(params={"text": "x" * 4_000_000})  # in bytes, the longest text that a form accepts
    assert [row.pk for row in Scheduler.objects.order_by("status", "pk")] == [second.pk, first.pk]
