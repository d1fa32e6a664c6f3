"""What a request that reads asks the database for."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import SchedulerExecution
from tests.factories import OutputFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_a_list_opens_no_transaction() -> None:
    """SQLite would lock the whole database for it, and wait for each writer."""
    SchedulerExecutionFactory()
    client = ApiClient(UserFactory(superuser=True))
    client.get("schedulers")  # notes the use of the token
    for path in ("schedulers", "executions", "failed", "processes"):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        found = [query["sql"] for query in captured if query["sql"].startswith(("BEGIN", "SAVEPOINT"))]
        assert not found, path


def test_a_follower_of_the_newest_attempt_asks_once_for_lines_and_gets_those_of_the_next_attempt() -> None:
    run = SchedulerExecutionFactory(scheduler=SchedulerFactory(), running=True)
    OutputFactory(execution=run, text="one\n", sequence=1)
    client, path = ApiClient(UserFactory(superuser=True)), f"executions/{run.pk}/output"
    cursor = client.get(path).json()["cursor"]
    OutputFactory(execution=run, text="two\n", sequence=2)
    with CaptureQueriesContext(connection) as captured:
        found = client.get(f"{path}?after={cursor}").json()
    assert sum("scheduling_output" in query["sql"] for query in captured) == 1
    SchedulerExecution.objects.update(attempt=2)
    OutputFactory(execution=run, text="three\n", attempt=2, sequence=1)
    later = client.get(f"{path}?after={found['cursor']}").json()
    assert [one["groups"] for one in (found, later)] == [
        [{"attempt": 1, "lines": ["two"]}],
        [{"attempt": 2, "lines": ["three"]}],
    ]
