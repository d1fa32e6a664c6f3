"""The columns of rows are English in each language: scripts compare them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import translation

from scheduling.core import outcome, run_bounds, skip_reasons
from tests.factories import AttemptFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_language() -> Iterator[None]:
    """The language of a request stays when it is over, so give the next test its own."""
    with translation.override("en"):
        yield


def test_reasons_and_errors_are_told_as_they_are_stored() -> None:
    client, ended = ApiClient(UserFactory(superuser=True)), outcome.Crashed(lost=True)
    error = {"error_class": ended.error_class, "error_message": ended.message}
    failed, paused_for = SchedulerExecutionFactory(failed=True, **error), run_bounds.ran_often(5)
    AttemptFactory(execution=failed, number=4, **error)
    skipped = SchedulerExecutionFactory(skipped=True, reason=skip_reasons.left_out(991, False))
    schedule = SchedulerFactory(status=False, pause_reason=paused_for)
    told = client.get(f"executions/{failed.pk}", Accept_Language="de").json()
    assert (told["error_message"], told["reason"]) == (ended.message, "All 3 retries have been used.")
    assert [attempt["error_message"] for attempt in told["attempts"]] == [ended.message]
    told = client.get(f"executions/{skipped.pk}", Accept_Language="de").json()
    assert told["reason"] == "Left out, because execution 991 was not over."
    assert client.get(f"schedulers/{schedule.pk}", Accept_Language="de").json()["pause_reason"] == paused_for
