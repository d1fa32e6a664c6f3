"""A query that is built once finds what the query of the ORM finds, for any number of values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, QuerySet, Value
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from scheduling.models.prepared import FIRST_MARK, PreparedOver
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db

NAMES = ("pk", "queue", "params", "deferred_at", "place__state")


def query(keys: Sequence[int], queues: Sequence[str]) -> QuerySet[SchedulerExecution, Any]:
    rows = SchedulerExecution.objects.filter(queue__in=queues, pk__in=keys, state="queued").order_by("-pk")
    return rows.values_list(*NAMES)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_it_finds_the_rows_and_their_python_values(count: int) -> None:
    now = clock.now()
    for number in range(8):
        SchedulerExecutionFactory(
            state="queued" if number % 3 else "claimed",
            queue=f"q{number % 4}",
            params={"n": number},
            deferred_at=now + timedelta(seconds=number),
        )
    prepared = PreparedOver(query, int, str)
    keys = list(SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True))
    for queues in (["q1"], ["q2", "q1"], ["q3", "q0", "q1"]):
        for start in range(0, len(keys), count):
            own = keys[start : start + count]
            assert prepared.rows(own, queues) == list(query(own, queues))


def test_the_statement_is_built_once_for_each_number_of_values() -> None:
    built: list[int] = []

    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        built.append(len(keys))
        return SchedulerExecution.objects.filter(pk__in=keys).values_list("pk")

    prepared = PreparedOver(build, int)
    row = SchedulerExecutionFactory()
    with CaptureQueriesContext(connection) as captured:
        for keys in ([row.pk], [row.pk, 7], [8], [row.pk, 9]):
            prepared.rows(keys)
    assert built == [1, 2]
    assert len(captured) == 4


def test_values_that_the_statement_does_not_have_are_refused() -> None:
    """Otherwise the marks themselves would be looked for."""

    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        return SchedulerExecution.objects.filter(pk__in=keys[:1]).values_list("pk")

    with pytest.raises(AssertionError, match="are not found in its statement"):
        PreparedOver(build, int).rows([1, 2])


def test_a_constant_of_the_query_stays() -> None:
    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        return SchedulerExecution.objects.filter(pk__in=keys, attempt__lt=5).values_list(
            "pk", Value("é%s"), F("attempt")
        )

    row = SchedulerExecutionFactory(attempt=4)
    SchedulerExecutionFactory(attempt=5)
    assert PreparedOver(build, int).rows([row.pk, row.pk + 1]) == [(row.pk, "é%s", 4)]
    assert row.pk < FIRST_MARK
