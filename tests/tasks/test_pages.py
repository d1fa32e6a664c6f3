"""Operators make a schedule for a task as for each worker. Its params are the arguments of the function."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from scheduling.models import Scheduler
from tests.admin.scheduler_form import ADD, form, worker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("params", "error"),
    [({"args": [1], "kwargs": {"twice": True}}, ""), ({"args": [1, 2]}, "cannot be called"), ({"rows": 1}, "rows")],
)
def test_a_schedule_for_a_task(admin_client: Client, params: dict[str, Any], error: str) -> None:
    data = form(worker=worker("tests.apps.sample.tasks.echo"), params=json.dumps(params))
    page = admin_client.post(ADD, data).content.decode()
    assert error in page
    assert [row.params for row in Scheduler.objects.all()] == ([] if error else [params])
