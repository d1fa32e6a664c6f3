"""The line of filters above a list shows what is chosen, and each chosen filter can be removed."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup, Tag
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import VIEW, logged_in
from tests.factories import (
    FailedExecutionFactory,
    ProcessFactory,
    ReportFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

EXECUTIONS = reverse("admin:scheduling_schedulerexecution_changelist")
SCHEDULES = reverse("admin:scheduling_scheduler_changelist")
INBOX = reverse("admin:scheduling_failedexecution_changelist")


def chosen(client: Client, address: str) -> dict[str, str]:
    """Return the chosen filters as the page shows them, each with the query string of the link that removes it."""
    response = client.get(address)
    assert response.status_code == 200
    bar = BeautifulSoup(response.content, "html.parser").select_one("ul.sch-filters")
    assert isinstance(bar, Tag)
    found = bar.select("li.sch-chosen-filter")
    return {
        each.select_one("summary, .sch-filter-name").text: each.select_one("a.sch-remove")["href"] for each in found
    }  # type: ignore[index, union-attr]


def test_chosen_filters_are_shown_in_words(editor: Client) -> None:
    row = FailedExecutionFactory(error_class="KeyError", scheduler__description="Invoices <of> the night")
    assert chosen(editor, EXECUTIONS) == {}
    assert chosen(editor, f"{EXECUTIONS}?state=failed&within=24h&scheduler={row.scheduler_id}&q=x&o=1") == {
        "State: failed": f"?o=1&q=x&scheduler={row.scheduler_id}&within=24h",
        "Time: last 24 hours": f"?o=1&q=x&scheduler={row.scheduler_id}&state=failed",
        "Schedule: Invoices <of> the night": "?o=1&q=x&state=failed&within=24h",
    }
    assert chosen(editor, f"{INBOX}?error_class=KeyError&fingerprint={row.fingerprint}&age=old") == {
        "Error group: " + row.fingerprint[:11] + "…": "?age=old&error_class=KeyError",
        "Error class: KeyError": f"?age=old&fingerprint={row.fingerprint}",
        "Age: older than 30 days": f"?error_class=KeyError&fingerprint={row.fingerprint}",
    }


def test_a_condition_without_a_menu_is_shown(editor: Client) -> None:
    SchedulerExecutionFactory()
    assert chosen(editor, f"{EXECUTIONS}?attempt=3&type=worker&target_name__startswith=a") == {
        "attempt: 3": "?target_name__startswith=a&type=worker",
        "Type: worker": "?attempt=3&target_name__startswith=a",
        "target_name__startswith: a": "?attempt=3&type=worker",
    }
    # Names that only begin alike are not removed together.
    assert (
        chosen(editor, f"{INBOX}?target_name=x&target_name__startswith=a")["Target: x"] == "?target_name__startswith=a"
    )
    # The view of the inbox is no filter.
    assert chosen(editor, f"{INBOX}?group=error") == {}


def test_a_value_that_does_not_exist_is_shown(editor: Client) -> None:
    assert chosen(editor, f"{INBOX}?error_class=Gone") == {"Error class: Gone": "?"}
    assert chosen(editor, f"{EXECUTIONS}?state=nonsense&scheduler=x&within=") == {
        "State: nonsense": "?scheduler=x&within=",
        "Schedule: x": "?state=nonsense&within=",
        "Time: -": "?scheduler=x&state=nonsense",
    }


def test_the_name_of_a_schedule_needs_its_permission(db: None) -> None:
    schedule = SchedulerFactory(description="Secret project")
    user = UserFactory(permissions=[each for each in VIEW if each != "scheduling.view_scheduler"])
    assert chosen(logged_in(user), f"{EXECUTIONS}?scheduler={schedule.pk}") == {f"Schedule: {schedule.pk}": "?"}


@pytest.mark.parametrize(
    ("model", "query", "words"),
    [
        ("scheduler", "type=worker", "Target type: worker"),
        ("process", "presence=alive", "Status: alive"),
        ("replay", "state__exact=open", "State: open"),
        ("schedulerexecution", "trigger=manual", "Trigger: by hand"),
    ],
)
def test_every_list_has_the_line(editor: Client, model: str, query: str, words: str) -> None:
    SchedulerFactory()
    ProcessFactory()
    address = reverse(f"admin:scheduling_{model}_changelist")
    assert words.partition(":")[0] in {text.partition(":")[0] for text in chosen(editor, f"{address}?{query}")}


def test_lists_without_filters_have_the_search(editor: Client) -> None:
    WorkerFactory()
    ReportFactory()
    for name in ("scheduling_worker", "cron_reports_report"):
        page = BeautifulSoup(editor.get(reverse(f"admin:{name}_changelist")).content, "html.parser")
        assert page.select_one(".sch-bar #searchbar")
        assert not page.select_one("ul.sch-filters")


def views(client: Client, address: str) -> dict[str, str]:
    """Return the links above a list by their labels. The current one has no address."""
    nav = BeautifulSoup(client.get(address).content, "html.parser").select_one("nav.sch-views")
    assert isinstance(nav, Tag)
    return {part.text: str(part.get("href", "")) for part in nav.select("a, strong")}


def test_links_above_a_list_lead_to_what_is_looked_for_most_often(editor: Client) -> None:
    SchedulerFactory(off=True, description="Paused one")
    SchedulerFactory(description="Active one")
    everything = {"All": "", "Failing": "?health=failing", "Paused": "?health=paused"}
    assert views(editor, SCHEDULES) == everything
    assert views(editor, f"{SCHEDULES}?q=one&o=1") == everything
    paused = editor.get(f"{SCHEDULES}?health=paused")
    assert [row.description for row in paused.context["cl"].result_list] == ["Paused one"]
    assert views(editor, f"{SCHEDULES}?health=paused") == {"All": "?", "Failing": "?health=failing", "Paused": ""}
    narrowed = views(editor, f"{SCHEDULES}?health=paused&type=worker")
    assert narrowed == {"All": "?", "Failing": "?health=failing", "Paused": "?health=paused"}
    assert views(editor, f"{EXECUTIONS}?took=slow&within=night") == {
        "All": "?", "Running": "?state=running", "Slow last night": "",
    }  # fmt: skip
