"""The pages of events: a list that is filtered by topic and searched by metadata, and the way to cancel."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from scheduling.admin.ui.paginators import CappedPaginator
from tests.admin.conftest import logged_in
from tests.admin.pages import text_in
from tests.factories import EventFactory, GroupFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:scheduling_event_changelist")


def found(client: Client, **query: str) -> set[int]:
    return {row.pk for row in client.get(LIST, query).context["cl"].result_list}


def test_the_list_is_filtered_by_topic_and_searched_by_metadata(viewer: Client) -> None:
    one = EventFactory(topic="invoice.due", metadata={"customer": 42, "vip": True})
    two = EventFactory(topic="invoice.paid", metadata={"customer": "42", "note": "a=b"})
    other = EventFactory(topic="stock.low", metadata={})
    assert found(viewer) == {one.pk, two.pk, other.pk}
    assert found(viewer, topic="invoice.due") == {one.pk}
    assert found(viewer, q="invoice") == {one.pk, two.pk}
    assert found(viewer, q=str(two.pk)) == {two.pk}
    assert found(viewer, q="customer=42") == {one.pk, two.pk}
    assert found(viewer, q="vip=true") == {one.pk}
    assert found(viewer, q="note=a=b") == {two.pk}
    for odd in ("customer__gt=1", "=", "x=", "a b=1", "customer=" + "9" * 400, "note='; --", "\x00=1"):
        assert found(viewer, q=odd) in (set(), {one.pk, two.pk, other.pk})
    assert [row.pk for row in viewer.get(LIST).context["cl"].result_list] == [other.pk, two.pk, one.pk]
    text = text_in(viewer.get(LIST))
    assert "customer=42, vip=True" in text  # in the order of the names: PostgreSQL keeps no order
    assert "stock.low" in text


def test_the_count_stops_at_its_cap(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "count_limit", 101)
    EventFactory.create_batch(102)
    page = viewer.get(LIST).content.decode()
    assert "more than 101 events: choose a topic or search to see older ones" in page
    assert "p=2" in page
    assert viewer.get(f"{LIST}?p=2").status_code == 200
    assert text_in(viewer.get(LIST, {"q": "another topic"})).count("0 events") == 1


def test_the_page_leads_to_the_execution_and_to_its_cancel(operator: Client) -> None:
    waits, over = EventFactory(), EventFactory(execution=SchedulerExecutionFactory(succeeded=True))
    page = operator.get(reverse("admin:scheduling_event_change", args=[waits.pk])).content.decode()
    assert reverse("admin:scheduling_schedulerexecution_cancel", args=[waits.pk]) in page
    assert reverse("admin:scheduling_schedulerexecution_change", args=[waits.pk]) in page
    assert "This event has ended." in text_in(operator.get(reverse("admin:scheduling_event_change", args=[over.pk])))
    assert operator.get(reverse("admin:scheduling_event_add")).status_code == 403


def test_a_member_sees_only_events_whose_executions_are_seen() -> None:
    group = GroupFactory()
    hidden = EventFactory(topic="zebra", execution=SchedulerExecutionFactory(scheduler=SchedulerFactory(group=group)))
    hidden.execution.group = group
    hidden.execution.save()
    seen = EventFactory()
    user: Any = UserFactory()
    user.user_permissions.add(Permission.objects.get(codename="view_event"))
    client = logged_in(user)
    assert found(client) == {seen.pk}
    assert "zebra" not in text_in(client.get(LIST))
    assert client.get(reverse("admin:scheduling_event_change", args=[hidden.pk])).status_code == 302
