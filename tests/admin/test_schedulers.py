"""Tests of the list of schedules and of the actions "resume", "pause" and "run now"."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.schedulers.run_now import RunNow
from scheduling.admin.ui.links import execution_url
from scheduling.core.lifecycle import State
from scheduling.models import Scheduler, SchedulerExecution, health
from tests.admin.audit import entry_line
from tests.admin.conftest import said
from tests.admin.scheduler_form import form, overview
from tests.factories import GroupFactory, SchedulerExecutionFactory, SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:scheduling_scheduler_changelist")


def act(client: Client, action: str, rows: list[Scheduler], address: str = LIST, **more: Any) -> Any:
    """Post an action as the list's form does, and follow redirects."""
    data = {"action": action, "_selected_action": [row.pk for row in rows], "index": "0", "select_across": "0", **more}
    return client.post(address, data, follow=True)


def run_address(row: Scheduler) -> str:
    """Return the URL of the confirmation page of "Run now"."""
    return reverse("admin:scheduling_scheduler_run", args=[row.pk])


# --- the list ---------------------------------------------------------------------------------------


def test_the_list_shows_words_zone_next_run_and_last_result(viewer: Client) -> None:
    row = SchedulerFactory(description="Invoices", schedule="0 2 * * 1-5", timezone="Europe/Madrid")
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    last = SchedulerExecutionFactory(scheduler=row, failed=True)
    page = viewer.get(LIST).content.decode()
    for text in (
        "Invoices",
        "At 02:00, Monday through Friday",
        "0 2 * * 1-5",
        "Europe/<wbr>Madrid",
        "tests.noop",
        " CE",
    ):
        assert text in page, text
    assert reverse("admin:scheduling_schedulerexecution_change", args=[last.pk]) in page
    assert "sch-bad" in page
    assert "failing" in page


def test_the_list_shows_schedules_that_cannot_run(viewer: Client) -> None:
    late = SchedulerFactory(worker=WorkerFactory(name="tests.absent"))
    Scheduler.objects.filter(pk=late.pk).update(next_run_at=clock.now() - timedelta(minutes=5))
    broken = SchedulerFactory()
    Scheduler.objects.filter(pk=broken.pk).update(plan_error="Minute: <b>", next_run_at=None, schedule="<i>")
    page = viewer.get(LIST).content.decode()
    for text in (
        "was due 5 min ago",
        "Is manage.py run_scheduler running?",
        "code missing",
        "cannot be planned",
        "&lt;b&gt;",
    ):
        assert text in page, text
    assert "<i>" not in page


@pytest.mark.parametrize(("seconds", "overdue"), [(45, False), (75, True)])
def test_list_and_page_agree_on_what_is_overdue(viewer: Client, seconds: int, overdue: bool) -> None:
    late = SchedulerFactory()
    Scheduler.objects.filter(pk=late.pk).update(next_run_at=clock.now() - timedelta(seconds=seconds))
    page = reverse("admin:scheduling_scheduler_change", args=[late.pk])
    assert ("Is manage.py run_scheduler running?" in viewer.get(LIST).content.decode()) is overdue
    assert ("It fell due" in viewer.get(page).content.decode()) is overdue


def test_the_queries_do_not_grow_with_the_rows(viewer: Client) -> None:
    def fill(count: int) -> None:
        for _ in range(count):
            row = SchedulerFactory(description="")
            SchedulerExecutionFactory.create_batch(2, scheduler=row, succeeded=True)
            SchedulerFactory(of_report=True, description="")
            SchedulerFactory(of_reminder=True, description="")

    def queries() -> list[dict[str, str]]:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert viewer.get(LIST).status_code == 200
        return captured.captured_queries

    fill(1)
    few = queries()
    fill(12)
    many = queries()
    assert len(many) <= len(few)
    assert len(many) <= 19
    joined = [query["sql"] for query in many if " JOIN " in query["sql"] and "scheduling_scheduler" in query["sql"]]
    assert joined == []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"plain", "report", "off"}),
        ("status__exact=0", {"off"}),
        ("type=report", {"report"}),
        ("type=nonsense", set()),
        ("q=repo", {"report"}),
        ("q=5 5 5", {"off"}),
        ("q=tests.noop", {"plain", "off"}),
    ],
)
def test_filters_and_search(viewer: Client, query: str, names: set[str]) -> None:
    SchedulerFactory(description="plain")
    SchedulerFactory(description="report", of_report=True, report__controller="tests.other")
    SchedulerFactory(description="off", off=True, schedule="5 5 5 5 *")
    assert {row.description for row in viewer.get(f"{LIST}?{query}").context["cl"].result_list} == names


def test_filter_by_group_offers_the_groups_of_the_user(viewer: Client) -> None:
    group, other = GroupFactory(name="team a"), GroupFactory(name="team b")
    User.objects.get(username="viewer").groups.add(group)
    SchedulerFactory(description="mine", group=group)
    SchedulerFactory(description="theirs", group=other)
    SchedulerFactory()
    page = viewer.get(f"{LIST}?group__id__exact={group.pk}")
    assert [row.description for row in page.context["cl"].result_list] == ["mine"]
    assert "team a" in page.content.decode()
    assert "team b" not in page.content.decode()


# --- on and off -----------------------------------------------------------------------------------


def test_switching_off_and_on_is_logged(operator: Client) -> None:
    on, off = SchedulerFactory(), SchedulerFactory(off=True)
    response = act(operator, "pause_selected", [on, off], post="yes")
    assert said(response) == ["1 schedule was paused."]
    on.refresh_from_db()
    assert (on.status, on.next_run_at) == (False, None)
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry_line(entry)) == (str(on.pk), "status: yes -> no")
    act(operator, "resume_selected", [on, off])
    for row in (on, off):
        row.refresh_from_db()
        assert row.status
        assert row.next_run_at is not None
    assert LogEntry.objects.count() == 3


def test_switching_off_twice_changes_nothing(operator: Client) -> None:
    row = SchedulerFactory(off=True)
    assert said(act(operator, "pause_selected", [row], post="yes")) == ["0 schedules were paused."]
    assert not LogEntry.objects.exists()


def test_a_schedule_that_cannot_be_switched_on_is_named(operator: Client) -> None:
    past = SchedulerFactory(once=True, description="Past", off=True)
    Scheduler.objects.filter(pk=past.pk).update(
        date_time=clock.now() - timedelta(days=1), planned_date_time=clock.now() - timedelta(days=1)
    )
    fine = SchedulerFactory(off=True)
    first, second = said(act(operator, "resume_selected", [past, fine]))
    assert first == "1 schedule was resumed."
    assert second == "Not changed: Past: This instant has passed. Choose one in the future."
    fine.refresh_from_db()
    assert fine.status


def test_all_matching_schedules_are_switched_across_pages(operator: Client) -> None:
    SchedulerFactory.create_batch(60, timezone="Europe/Madrid")
    other = SchedulerFactory()
    first = Scheduler.objects.filter(timezone="Europe/Madrid")[0]
    response = act(
        operator, "pause_selected", [first], f"{LIST}?timezone__exact=Europe/Madrid", select_across="1", post="yes"
    )
    if response.status_code == 200 and not Scheduler.objects.filter(status=False).exists():
        pytest.fail(f"nothing was switched: {said(response)}")
    assert Scheduler.objects.filter(status=False).count() == 60
    other.refresh_from_db()
    assert other.status


def test_pause_asks_for_a_reason_and_every_page_shows_it(operator: Client) -> None:
    rows = SchedulerFactory.create_batch(2)
    off = SchedulerFactory(off=True)
    asked = act(operator, "pause_selected", [*rows, off])
    assert "2 schedules will not run at their times until they are resumed" in asked.content.decode()
    assert Scheduler.objects.filter(status=True).count() == 2
    operator.post(LIST, {**_hidden(asked), "reason": "  moving the\r\n<b>database</b> "}, follow=True)
    assert not Scheduler.objects.filter(status=True).exists()
    row = Scheduler.objects.get(pk=rows[0].pk)
    assert row.pause_reason == "moving the <b>database</b>"
    assert Scheduler.objects.get(pk=off.pk).pause_reason == ""
    entry = LogEntry.objects.latest("id")
    assert entry_line(entry) == "status: yes -> no; pause_reason: (empty) -> moving the <b>database</b>"
    for address in (LIST, reverse("admin:scheduling_scheduler_change", args=[row.pk])):
        page = operator.get(address).content.decode()
        assert "moving the &lt;b&gt;database&lt;/b&gt;" in page, address


def test_resuming_removes_the_reason(operator: Client) -> None:
    row = SchedulerFactory(off=True, pause_reason="waiting for Tuesday")
    page = operator.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    resume = reverse("admin:scheduling_scheduler_resume", args=[row.pk])
    assert f'<form method="post" action="{resume}">' in page
    assert "waiting for Tuesday" in operator.get(resume).content.decode()
    response = operator.post(resume, follow=True)
    assert response.redirect_chain[-1][0] == reverse("admin:scheduling_scheduler_change", args=[row.pk])
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (True, "")
    assert row.next_run_at is not None
    assert entry_line(LogEntry.objects.get()) == ("status: no -> yes; pause_reason: waiting for Tuesday -> (empty)")


def test_pause_returns_to_the_page_it_started_from(operator: Client) -> None:
    row = SchedulerFactory()
    pause = reverse("admin:scheduling_scheduler_pause", args=[row.pk])
    assert pause in operator.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    for back, where in (
        ("dashboard", reverse("admin:scheduling_dashboard_changelist")),
        ("https://elsewhere.example/", reverse("admin:scheduling_scheduler_change", args=[row.pk])),
    ):
        asked = operator.get(pause, {"back": back})
        assert asked.context["c"].back == where
        row.refresh_from_db()
        assert row.status
        response = operator.post(pause, {**dict(asked.context["c"].hidden), "reason": ""})
        assert response["Location"] == where
        row.refresh_from_db()
        assert (row.status, row.pause_reason) == (False, "")
        assert operator.get(pause).status_code == 302  # the schedule is off already
        operator.post(reverse("admin:scheduling_scheduler_resume", args=[row.pk]))


def test_skipped_run_says_why_its_schedule_is_paused(operator: Client) -> None:
    row = SchedulerFactory(off=True, pause_reason="the warehouse moves")
    for state, told in (("skipped", True), ("succeeded", False)):
        execution = SchedulerExecutionFactory(scheduler=row, **{state: True})
        page = operator.get(reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk]))
        assert ("The schedule is paused: the warehouse moves" in page.content.decode()) is told


def test_form_keeps_the_pause_reason_until_the_schedule_is_resumed(editor: Client) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.noop"))
    address = reverse("admin:scheduling_scheduler_change", args=[row.pk])
    values = form(worker=row.worker.pk, pause_reason="the warehouse moves")
    editor.post(address, {**values, "paused": "on"})
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (False, "the warehouse moves")
    assert "pause_reason: (empty) -> the warehouse moves" in entry_line()
    editor.post(address, values)
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (True, "")


def test_a_deed_has_one_word_on_all_pages(operator: Client) -> None:
    row = SchedulerFactory()
    listed = BeautifulSoup(operator.get(LIST).content, "html.parser")
    actions = {str(option["value"]): option.text for option in listed.select("select[name=action] option[value]")}
    assert (actions["pause_selected"], actions["resume_selected"]) == ("Pause selected", "Resume selected")
    choices = {
        str(link.get("href")): link.text.strip() for link in listed.select(".sch-filters a[href*=status__exact]")
    }
    assert choices == {"?status__exact=1": "active", "?status__exact=0": "paused"}
    for page, name in (("pause", "Pause"), ("resume", "Resume")):
        address = reverse(f"admin:scheduling_scheduler_{page}", args=[row.pk])
        asked = BeautifulSoup(operator.get(address).content, "html.parser")
        assert [asked.find("h1").text, asked.select_one(".submit-row input")["value"]] == [name, name]
        assert said(operator.post(address, {"reason": ""}, follow=True)) == [f"1 schedule was {page}d."]
        chip = BeautifulSoup(operator.get(LIST).content, "html.parser").select_one("#result_list .sch-chip")
        assert (chip.text == "paused") is (name == "Pause")
    assert sum(word in listed.text.lower() for word in ("switch", "enable", "disable")) == 0


def test_pause_reason_is_bounded_and_kept_on_a_second_click(operator: Client) -> None:
    row = SchedulerFactory()
    pause = reverse("admin:scheduling_scheduler_pause", args=[row.pk])
    operator.post(pause, {"reason": "x" * 5_000})
    operator.post(pause, {"reason": "another"})
    row.refresh_from_db()
    assert row.pause_reason == "x" * 500
    other = SchedulerFactory()
    refused = operator.post(
        reverse("admin:scheduling_scheduler_pause", args=[other.pk]), {"reason": "why\x00", "back": "dashboard"}
    )
    assert dict(refused.context["c"].hidden) == {"back": "dashboard"}
    assert "Null characters are not allowed." in refused.content.decode()
    other.refresh_from_db()
    assert other.status
    assert LogEntry.objects.count() == 1


# --- run now ----------------------------------------------------------------------------------------


def test_run_now_asks_first_and_then_leads_to_the_execution(operator: Client) -> None:
    row = SchedulerFactory(description="Invoices", off=True)
    page = operator.get(run_address(row))
    assert "It is paused, and stays paused after this run." in page.content.decode()
    assert not SchedulerExecution.objects.exists()
    (hidden,) = page.context["c"].hidden
    response = operator.post(run_address(row), dict([hidden]), follow=True)
    execution = SchedulerExecution.objects.get()
    assert response.redirect_chain[-1][0] == reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk])
    assert (execution.state, execution.trigger, execution.requested_by) == ("queued", "manual", "operator")
    assert said(response) == ["Started."]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry_line(entry)) == (str(row.pk), "run now")
    row.refresh_from_db()
    assert not row.status


def test_a_second_click_does_not_run_the_schedule_again(operator: Client) -> None:
    row = SchedulerFactory()
    key = {"key": str(uuid.uuid4())}
    for _ in range(2):
        operator.post(run_address(row), key)
    assert SchedulerExecution.objects.count() == 1
    assert LogEntry.objects.count() == 1
    operator.post(run_address(row), {"key": "no key"})
    assert SchedulerExecution.objects.count() == 2


def test_params_that_do_not_fit_are_refused_before_the_run(operator: Client) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.typed"))
    Scheduler.objects.filter(pk=row.pk).update(params={"since_days": 999})
    page = operator.get(run_address(row)).content.decode()
    assert "It cannot run with its own parameters, because they do not fit the code. since_days: " in page
    operator.post(run_address(row))
    assert not SchedulerExecution.objects.exists()
    # If the operator replaces the parameters for this run, the run is accepted.
    operator.post(run_address(row), {"params": '{"since_days": 9}'})
    assert SchedulerExecution.objects.get().params == {"since_days": 9}


def test_a_target_with_invalid_default_params_cannot_be_run(operator: Client) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.typed"))
    row.worker.params = ["no object"]
    row.worker.save()
    page = operator.get(run_address(row)).content.decode()
    assert "Fix them first" in page
    assert '<form method="post" class' not in page
    operator.post(run_address(row), {"params": "{}"})
    assert not SchedulerExecution.objects.exists()


def test_parameters_for_this_run_only(operator: Client) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 3})
    page = operator.get(run_address(row))
    form = page.context["c"].params
    assert (form.open, form.inputs["since_days"].value()) == (False, "3")
    key = dict(page.context["c"].hidden)
    typed = {"params.for": "worker/tests.typed", "params": "{}", **key}
    refused = operator.post(run_address(row), {**typed, "params.field.since_days": "700"})
    assert "must be at most 90" in refused.content.decode()
    assert dict(refused.context["c"].hidden) == {"key": uuid.UUID(key["key"])}
    assert not SchedulerExecution.objects.exists()
    for _click in range(2):
        operator.post(run_address(row), {**typed, "params.field.since_days": "7"})
    assert SchedulerExecution.objects.get().params == {"since_days": 7}
    row.refresh_from_db()
    assert row.params == {"since_days": 3}
    assert entry_line(LogEntry.objects.get()) == "run now, for this run only; params.since_days: 3 -> 7"
    # If the input is empty, this run uses the target's default and not the schedule's own value.
    operator.post(run_address(row), {**typed, "params.field.since_days": "", "key": ""})
    assert SchedulerExecution.objects.latest("id").params == {}


def test_editing_both_the_inputs_and_the_json_runs_nothing(operator: Client) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 3})
    asked = {"params.for": "worker/tests.typed", "params.field.since_days": "8", "params.was": '{"since_days": 3}'}
    response = operator.post(run_address(row), {**asked, "params": '{"since_days": 9}'})
    assert response.status_code == 200
    assert "Both the inputs and this text were edited." in response.content.decode()
    assert 'name="params.field.since_days" value="8"' in response.content.decode()
    assert not SchedulerExecution.objects.exists()
    operator.post(run_address(row), {**asked, "params": ""})
    assert SchedulerExecution.objects.get().params == {"since_days": 8}


def test_the_lists_action_runs_several(operator: Client) -> None:
    rows = SchedulerFactory.create_batch(7, worker=WorkerFactory(name="tests.typed"))
    Scheduler.objects.filter(pk=rows[0].pk).update(params=["nonsense"])
    page = act(operator, "run_selected", rows)
    assert "7 schedules will run once, now" in page.content.decode()
    assert not SchedulerExecution.objects.exists()
    response = operator.post(LIST, _hidden(page), follow=True)
    assert SchedulerExecution.objects.filter(state=State.QUEUED.value).count() == 6
    refused, done = said(response)
    assert "Parameters are a JSON object." in refused
    assert "6 started:" in done
    assert "and 1 more" in done
    assert LogEntry.objects.count() == 6
    operator.post(LIST, _hidden(page))
    assert SchedulerExecution.objects.count() == 6


def test_too_many_at_once_are_refused(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunNow, "schedules_per_request", 3)
    rows = SchedulerFactory.create_batch(4)
    page = act(operator, "run_selected", rows)
    assert "At most 3 can be run at once." in page.content.decode()
    assert "At most 3 can be run at once." in operator.post(LIST, _hidden(page)).content.decode()
    assert not SchedulerExecution.objects.exists()


def _hidden(page: Any) -> dict[str, Any]:
    """Return the hidden inputs of the confirmation page."""
    data: dict[str, Any] = {}
    for name, value in page.context["c"].hidden:
        data.setdefault(name, []).append(value)
    return data


def test_a_schedule_that_does_not_exist(operator: Client) -> None:
    for key in ("999999", "abc", "0"):
        response = operator.get(reverse("admin:scheduling_scheduler_run", args=[key]), follow=True)
        assert "It may be deleted" in said(response)[0]


def test_very_many_schedules_are_sorted_by_number(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy, failing = SchedulerFactory(), SchedulerFactory()
    SchedulerExecutionFactory(scheduler=healthy, succeeded=True)
    SchedulerExecutionFactory(scheduler=failing, failed=True)
    sentence = "There are more than"
    for most, order, noted in ((2, [failing, healthy], False), (1, [healthy, failing], True)):
        monkeypatch.setattr(health, "SORTED_SCHEDULES", most)
        page = editor.get(LIST)
        assert [row.pk for row in page.context["cl"].result_list] == [row.pk for row in order]
        assert (sentence in page.content.decode()) is noted
        lines = editor.get("/admin/scheduling/dashboard/").context["parts"]["schedules"]["lines"]
        assert [line["pk"] for line in lines] == [row.pk for row in order]


def test_the_last_result_is_not_a_row_that_a_pause_left(viewer: Client) -> None:
    row = SchedulerFactory()
    good = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    left = SchedulerExecutionFactory(
        scheduler=row, skipped=True, reason="Paused from 2026-03-10 12:00 to 12:35 UTC. 3 occurrences did not run."
    )
    cell = BeautifulSoup(viewer.get(LIST).content, "html.parser").select_one(".field-last_column")
    strip = BeautifulSoup(viewer.get(overview(row)).content, "html.parser").select_one(".sch-strip")
    for part in (cell, strip):
        assert part is not None
        assert execution_url(good.pk) in str(part)
        assert execution_url(left.pk) not in str(part)


def test_a_list_filtered_by_health_has_all_its_pages(editor: Client) -> None:
    failing = SchedulerFactory.create_batch(51)
    for row in failing:
        SchedulerExecutionFactory(scheduler=row, failed=True)
    SchedulerExecutionFactory(scheduler=SchedulerFactory(), succeeded=True)
    pages = [editor.get(LIST, {"health": "failing", **more}).context["cl"] for more in ({}, {"p": "2"}, {"all": ""})]
    assert [cl.result_count for cl in pages] == [51, 51, 51]
    assert [len(cl.result_list) for cl in pages] == [50, 1, 51]
    assert {row.pk for cl in pages[:2] for row in cl.result_list} == {row.pk for row in failing}
    assert [*pages[0].result_list, *pages[1].result_list] == sorted(failing, key=lambda row: (row.description, row.pk))
    assert editor.get(LIST, {"health": "late"}).context["cl"].result_list == []
