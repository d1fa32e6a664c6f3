"""Tests of the causes in the inbox, as the dashboard's part "Needs attention" shows them."""

from __future__ import annotations

from django.test import Client

from tests.factories import SchedulerExecutionFactory


def test_the_dashboard_offers_to_republish_a_cause(operator: Client, viewer: Client) -> None:
    one = SchedulerExecutionFactory(failed=True, fingerprint="1" * 16)
    SchedulerExecutionFactory.create_batch(2, failed=True, fingerprint="2" * 16)
    part = "/admin/scheduling/dashboard/part/attention/"
    page = operator.get(part).content.decode()
    assert f'/failedexecution/{one.pk}/republish/?next=%2Fadmin%2Fscheduling%2Fdashboard%2F"' in page
    assert f'action="/admin/scheduling/failedexecution/?fingerprint={"2" * 16}"' in page
    answer = operator.post(
        f"/admin/scheduling/failedexecution/?fingerprint={'2' * 16}",
        {"action": "republish_selected", "select_across": "1", "_selected_action": "all"},
    )
    assert answer.status_code == 200
    assert "2 failed runs" in answer.content.decode()
    assert "epublish" not in viewer.get(part).content.decode().replace("then republish", "")


def test_a_user_who_may_not_see_the_inbox_sees_no_error(watcher: Client) -> None:
    SchedulerExecutionFactory(failed=True, error_class="shop.SecretError")
    page = watcher.get("/admin/scheduling/dashboard/part/attention/").content.decode()
    assert "Failures in the inbox: 1." in page
    assert "SecretError" not in page
