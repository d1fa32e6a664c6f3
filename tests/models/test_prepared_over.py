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
from scheduling.models.prepared_over import FIRST_MARK, PreparedOver
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


def test_the_statement_is_built_once_for_all_numbers_of_values() -> None:
    built: list[int] = []

    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        built.append(len(keys))
        return SchedulerExecution.objects.filter(pk__in=keys).values_list("pk")

    prepared = PreparedOver(build, int)
    row = SchedulerExecutionFactory()
    with CaptureQueriesContext(connection) as captured:
        for keys in ([row.pk], [row.pk, 7], [8], [row.pk, 9]):
            prepared.rows(keys)
    assert built == [1]
    assert len(captured) == 4


@pytest.mark.parametrize("times", [0, 2])
def test_a_list_that_the_statement_does_not_have_once_is_refused(times: int) -> None:
    """Otherwise the mark itself would be looked for."""

    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        rows = SchedulerExecution.objects.all()
        for column in ("pk", "attempt")[:times]:
            rows = rows.filter(**{f"{column}__in": keys})
        return rows.values_list("pk")

    with pytest.raises(AssertionError, match="are not found in its statement"):
        PreparedOver(build, int).rows([1, 2])


def test_a_constant_of_the_query_stays() -> None:
    def build(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
        rows = SchedulerExecution.objects.filter(pk__in=keys, attempt__lt=5).extra(where=["'5%%' = '5%%'"])
        return rows.values_list("pk", Value("é%s"), F("attempt"))

    row = SchedulerExecutionFactory(attempt=4)
    SchedulerExecutionFactory(attempt=5)
    assert PreparedOver(build, int).rows([row.pk, row.pk + 1]) == [(row.pk, "é%s", 4)]
    assert row.pk < FIRST_MARK


def test_a_key_that_is_no_number_never_reaches_the_statement() -> None:
    """The keys are written into the statement without quotes."""
    prepared = PreparedOver(lambda keys: SchedulerExecution.objects.filter(pk__in=keys).values_list("pk"), int)
    for hostile in ("1) OR 1=1 --", "1,2", None, [1]):
        with pytest.raises((ValueError, TypeError)), CaptureQueriesContext(connection) as captured:
            prepared.rows([1, hostile])
        assert not captured.captured_queries
    assert prepared.rows([1, 2**63 - 1]) == []


def test_an_empty_list_has_no_rows_and_no_statement() -> None:
    prepared = PreparedOver(query, int, str)
    with CaptureQueriesContext(connection) as captured:
        assert prepared.rows([], ["main"]) == []
        assert prepared.rows([1], []) == []
    assert not captured.captured_queries


@pytest.mark.skipif(connection.vendor != "postgresql", reason="the others do not tell statements apart by their lists")
def test_lists_of_all_lengths_are_one_statement_for_the_server() -> None:
    prepared = PreparedOver(lambda keys: SchedulerExecution.objects.filter(pk__in=keys).values_list("pk"), int)
    with CaptureQueriesContext(connection) as captured:
        prepared.rows([1, 2, 3])
    assert "= ANY('{1,2,3}')" in captured.captured_queries[0]["sql"]
