"""Lists stay bounded, and values that cannot be written stop no list."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from scheduling.http import answers
from scheduling.models import Scheduler
from tests.factories import SchedulerFactory, UserFactory
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db


def test_a_page_ends_early_if_its_rows_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CHUNK", 2)
    monkeypatch.setattr(answers, "LARGEST_PAGE", 3_000)
    client = ApiClient(UserFactory(superuser=True))
    worker = SchedulerFactory().worker
    Scheduler.objects.all().delete()
    keys = [SchedulerFactory(worker=worker, description="x" * 250).pk for _ in range(11)]
    found: list[int] = []
    after: Any = 0
    pages = 0
    while after is not None:
        page = client.get(f"schedulers?after={after}&limit=200").json()
        found += [row["id"] for row in page["items"]]
        after, pages = page["next"], pages + 1
    assert found == keys
    assert pages > 2


@pytest.mark.parametrize("depth", [300])
def test_params_that_cannot_be_written_stop_no_list(depth: int) -> None:
    good, bad = SchedulerFactory.create_batch(2)
    if connection.vendor == "mysql":
        pytest.skip("MariaDB and MySQL refuse such a value")
    deep = '{"a":' + "[" * depth + "]" * depth + "}"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET params = %s WHERE id = %s", [deep, bad.pk])
    client = ApiClient(UserFactory(superuser=True))
    page = client.get("schedulers").json()
    assert [row["id"] for row in page["items"]] == [good.pk]
    assert [row["id"] for row in page["unusable"]] == [bad.pk]
    alone = client.get(f"schedulers/{bad.pk}")
    assert (alone.status_code, alone.json()["code"]) == (409, "UNUSABLE_VALUE")
