"""Browser tests of a schedule's page under a strict Content-Security-Policy. The browser's console must stay empty."""

from __future__ import annotations

import os
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone as clock
from playwright.sync_api import Locator, Page, Route, expect
from pydantic import BaseModel

from scheduling.handlers import Handler, registry
from scheduling.models import Scheduler, SchedulerExecution, Worker
from tests.admin.chromium import Visit, overflow
from tests.admin.conftest import OPERATE, VIEW
from tests.admin.params_models import Many
from tests.apps.sample.workers import noop
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ADD = reverse("admin:scheduling_scheduler_add")


def picture(page: Page, name: str) -> None:
    """Save a screenshot if the environment variable SCREENSHOTS names a directory."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/{name}.png", full_page=True)


def open_json(page: Page) -> Locator:
    """Open the section with the parameters as JSON, and return the section's text area."""
    page.locator("summary", has_text="As JSON").click()
    box = page.locator("textarea[name=params]")
    expect(box).to_be_visible()
    return box


def test_the_preview_is_updated_while_the_user_types(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada", zone="Asia/Tokyo")
    page.goto(ADD)
    panel = page.locator(".field-next_runs")
    expect(panel).to_contain_text("Enter a cron expression to see the next runs.")
    page.get_by_label("Time zone:").fill("Europe/Madrid")
    page.get_by_label("Schedule:", exact=True).press_sequentially("0 8 * * 1-5")
    expect(panel.locator(".sch-words")).to_have_text("At 08:00, Monday through Friday")
    expect(panel.locator("tbody tr")).to_have_count(10)
    # The table also shows the user's local time. 8:00 in Madrid is 15:00 or 16:00 in Tokyo.
    expect(panel.locator("thead th").nth(1)).to_have_text("Your time: Asia/Tokyo")
    expect(panel.locator("tbody tr").first.locator("td").nth(1)).to_have_text(re.compile(r" 1[56]:00:00$"))
    said = panel.get_by_role("status")
    expect(said).to_have_text(re.compile(r"^At 08:00, Monday through Friday\. Next run: "))
    picture(page, "preview")

    page.get_by_label("Schedule:", exact=True).fill("61 8 * * 1-5")
    expect(panel.locator(".sch-note-bad")).to_have_text(re.compile("Minute: '61' is outside 0-59."))
    expect(said).to_have_text("Minute: '61' is outside 0-59.")
    page.get_by_label("Schedule:", exact=True).fill("* * * * *")
    expect(panel.locator(".sch-note-warn")).to_contain_text("It runs each minute.")
    page.get_by_label("Paused").check()
    expect(panel).to_contain_text("these would be its next runs")

    # A preset fills in the field, and the panel is updated.
    page.get_by_role("button", name="Hourly").click()
    expect(page.get_by_label("Schedule:", exact=True)).to_have_value("0 * * * *")
    expect(panel.locator(".sch-words")).to_have_text("Every hour")

    # The name of the cron field at the caret is highlighted.
    page.get_by_label("Schedule:", exact=True).fill("0 8 ")
    expect(page.locator(".sch-cron-parts .sch-here")).to_have_text("day of month")
    page.get_by_text("Syntax").click()
    expect(page.get_by_text("every tenth, from the first")).to_be_visible()


def test_an_interval_is_built_from_its_parts(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(ADD)
    field, words = page.get_by_label("Schedule:", exact=True), page.locator(".field-next_runs .sch-words")
    page.get_by_text("Build an interval").click()
    box = page.locator("details.sch-every")
    expect(box.get_by_label("Fri")).to_be_hidden()
    box.get_by_role("button", name="Use this interval").click()
    expect(field).to_have_value("@every 90m")
    expect(words).to_have_text("Every 90 minutes, counted from 2001-01-01 00:00 UTC")
    box.get_by_label("from (UTC)").fill("2026-01-05T08:00")
    box.get_by_label("Unit").select_option("h")
    box.get_by_label("Every").fill("6")
    box.get_by_label("Every").press("Enter")  # does not save the schedule
    expect(field).to_have_value("@every 6h from 2026-01-05T08:00Z")
    box.get_by_label("Unit").select_option("w")
    expect(box.get_by_label("from (UTC)")).to_be_hidden()
    box.get_by_label("Every").fill("2")
    box.get_by_label("Mon").check()
    box.get_by_label("Fri").check()
    box.get_by_label("from", exact=True).fill("2026-01-09")
    picture(page, "interval")
    box.get_by_role("button", name="Use this interval").click()
    expect(field).to_have_value("@every 2w on mon,fri at 08:00 from 2026-01-09")
    expect(words).to_have_text("At 08:00, every second week on Monday and Friday, counted from 2026-01-09")
    box.get_by_label("Every").fill("0")
    box.get_by_role("button", name="Use this interval").click()
    expect(page.locator(".field-next_runs .sch-note-bad")).to_contain_text("the shortest is '@every 1m'.")


def test_the_entries_of_a_calendar_are_checked_while_the_user_types(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(reverse("admin:scheduling_calendar_add"))
    panel, entries = page.locator(".field-excluded"), page.get_by_label("Entries:")
    expect(panel).to_contain_text("It has no entries")
    entries.press_sequentially("every 12-25 Christmas\nsat 09:00")
    expect(panel.locator(".sch-note-bad")).to_contain_text("Line 2: “09:00” after “sat”")
    entries.press_sequentially("-10:00")
    expect(panel.locator(".sch-month")).to_have_count(12)
    expect(panel.get_by_role("status")).to_contain_text("2 entries.")
    assert overflow(page) == 0


def test_a_click_mends_a_mistyped_zone(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(ADD)
    page.get_by_label("Schedule:", exact=True).fill("0 8 * * *")
    page.get_by_label("Time zone:").fill("berlin")
    page.get_by_role("button", name="Use Europe/Berlin").click()
    expect(page.get_by_label("Time zone:")).to_have_value("Europe/Berlin")
    expect(page.get_by_label("Time zone:")).to_be_focused()
    expect(page.locator(".field-next_runs .sch-words")).to_have_text("At 08:00")


def test_the_table_of_attempts_is_updated_while_the_user_types(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(ADD)
    table = page.locator(".field-retry_table")
    page.get_by_text("Retry policy").click()
    expect(table).to_contain_text("4 attempts at most.")
    page.get_by_label("Retries:").fill("1")
    expect(table).to_contain_text("2 attempts at most.")
    page.get_by_label("First retry delay").fill("10ms")
    expect(table.locator(".sch-note-bad")).to_contain_text("must be from 1s to 1h")
    page.get_by_label("First retry delay").fill("")
    page.get_by_label("Worker:").select_option(str(Worker.objects.get(name="tests.fail").pk))
    expect(table).to_contain_text("over that of the target's code")
    # An empty field shows the value that the schedule inherits from the target. A refused form shows this value too.
    delay = page.get_by_label("First retry delay")
    expect(delay).to_have_attribute("placeholder", "inherited: 1s")
    expect(page.get_by_label("Jitter").locator("option").first).to_have_text("Inherited: off")
    page.get_by_label("Schedule:", exact=True).fill("61 * * * *")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errornote")).to_be_visible()
    expect(delay).to_have_attribute("placeholder", "inherited: 1s")


def test_a_new_request_aborts_an_older_request(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(ADD)
    # The server never answers the first request. The page must abort this request and not wait for the answer.
    first, given_up = re.compile(r"/preview/runs/.*schedule=1\+"), list[str]()
    page.route(first, lambda route: None)
    page.on("requestfailed", lambda request: given_up.append(request.url))
    with page.expect_request(first):
        page.get_by_label("Schedule:", exact=True).fill("1 8 * * *")
    page.get_by_label("Schedule:", exact=True).fill("2 8 * * *")
    expect(page.locator(".field-next_runs .sch-words")).to_have_text("At 08:02")
    assert [url for url in given_up if first.search(url)]


def test_last_preview_is_marked_stale_when_the_server_does_not_answer(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(schedule="0 8 * * *")
    page = visit("ada")
    page.goto(reverse("admin:scheduling_scheduler_edit", args=[row.pk]))
    page.route("**/preview/runs/**", lambda route: route.fulfill(status=200, body="<form>login</form>"))
    page.get_by_label("Schedule:", exact=True).fill("0 9 * * *")
    expect(page.locator(".field-next_runs .sch-live-old")).to_contain_text("At 08:00")
    expect(page.locator(".field-next_runs [role=status]")).to_contain_text("Not updated")


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> int:
    """The primary key of a worker whose params model has a field of every kind."""
    handler = Handler("worker", "tests.many", noop, params=Many)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.many"), handler)
    return int(WorkerFactory(name="tests.many", params={"days": 7}).pk)


def test_the_parameters_follow_the_target_and_can_be_written_as_json(visit: Visit, many: int) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    page.goto(ADD)
    page.get_by_label("Schedule:", exact=True).fill("0 8 * * *")
    text = page.locator("textarea[name=params]")
    expect(text).to_be_visible()
    text.fill('{"needed": "from JSON"}')
    page.get_by_label("Worker:").select_option(str(many))
    expect(page.get_by_label("needed")).to_have_value("from JSON")
    page.get_by_label("needed").fill("some text")
    page.get_by_label("region").select_option("us")
    page.get_by_label("Days back").fill("91")
    picture(page, "params")

    # The error of an input is shown at the input.
    page.get_by_role("button", name="Save and continue editing").click()
    wrong = page.locator("[data-param=days]")
    expect(wrong.locator(".errorlist")).to_contain_text("at most 90")
    expect(text).to_be_hidden()
    picture(page, "params-wrong")

    # The JSON text area holds the values that were typed into the inputs. A JSON error is shown at the text area.
    expect(open_json(page)).to_have_value('{\n  "needed": "some text",\n  "region": "us",\n  "days": 91\n}')
    text.fill('{"needed": "from JSON", "days": 91')
    page.get_by_role("button", name="Save and continue editing").click()
    box = page.locator(".sch-params-json")
    expect(box.locator(".errorlist")).to_contain_text("This is not JSON")
    expect(text).to_be_visible()

    # If the user has edited both the inputs and the JSON, the form is refused once, and the user must choose.
    text.fill('{"needed": "from JSON", "days": 9}')
    page.get_by_label("part").fill('{"deep": 2}')
    page.get_by_role("button", name="Save and continue editing").click()
    expect(box.locator(".errorlist")).to_contain_text("Both the inputs and this text were edited.")
    expect(page.get_by_label("part")).to_have_value(re.compile('"deep": 2'))
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist .success")).to_contain_text("was added successfully")
    row = Scheduler.objects.latest("id")
    assert row.params == {"needed": "from JSON", "days": 9}
    page.get_by_label("part").fill('{"deep": 2}')
    page.get_by_role("button", name="Save and continue editing").click()
    row.refresh_from_db()
    assert row.params == {"needed": "from JSON", "days": 9, "part": {"deep": 2}}

    # After another target is chosen, the page shows the inputs of that target.
    page.get_by_label("Worker:").select_option(str(Worker.objects.get(name="tests.typed").pk))
    expect(page.get_by_label("since_days")).to_be_visible()
    expect(page.get_by_label("needed")).to_have_count(0)


def test_a_target_chosen_before_the_script_starts_gets_its_inputs(visit: Visit, many: int) -> None:
    """The user may choose a target before the script has loaded. The browser may also restore an earlier choice."""
    UserFactory(username="ada", superuser=True)
    page = visit("ada")
    held: list[Route] = []
    page.route("**/scheduling/params.js", lambda route: held.append(route))
    with page.expect_request("**/scheduling/params.js"):
        page.goto(ADD, wait_until="commit")
    page.get_by_label("Worker:").select_option(str(many))
    held[0].continue_()
    expect(page.get_by_label("needed")).to_be_visible()


def test_inputs_are_locked_while_the_server_answers(visit: Visit, many: int) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(schedule="0 8 * * *", worker_id=many, params={"needed": "x"})
    page = visit("ada")
    page.goto(reverse("admin:scheduling_scheduler_edit", args=[row.pk]))
    held: list[Route] = []
    page.route("**/scheduler/params/**", lambda route: held.append(route))
    with page.expect_request("**/scheduler/params/**"):
        page.get_by_label("Worker:").select_option("")
    assert page.evaluate("document.querySelector('[data-params]').inert") is True
    # The server's answer has no inputs. The page keeps the old inputs and shows a message.
    held[0].fulfill(status=200, body="<form>login</form>")
    expect(page.locator(".sch-params[aria-busy]")).to_have_count(0)
    expect(page.locator(".sch-params [role=status]")).to_contain_text("the parameters stay as they are")
    expect(page.get_by_label("needed")).to_have_value("x")
    page.unroute("**/scheduler/params/**")
    page.get_by_label("Worker:").select_option(str(Worker.objects.get(name="tests.typed").pk))
    expect(page.get_by_label("since_days")).to_be_visible()


def test_the_form_works_without_javascript(visit: Visit, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fewer(BaseModel):
        needed: str
        order: str

    fewer = Handler("worker", "tests.fewer", noop, params=Fewer)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.fewer"), fewer)
    other = str(WorkerFactory(name="tests.fewer").pk)
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(schedule="0 8 * * *", worker_id=many, params={"needed": "x"})
    page = visit("ada", script=False)
    page.goto(reverse("admin:scheduling_scheduler_edit", args=[row.pk]))
    expect(page.locator(".field-next_runs .sch-words")).to_have_text("At 08:00")
    expect(page.locator(".field-next_runs thead th").nth(1)).to_have_text("UTC")
    expect(page.get_by_role("button", name="Hourly")).to_have_count(0)
    page.get_by_label("needed").fill("typed")
    page.get_by_role("button", name="Save and continue editing").click()
    row.refresh_from_db()
    assert row.params == {"needed": "typed"}
    open_json(page).fill('{"needed": "as JSON", "days": 3}')
    page.get_by_role("button", name="Save and continue editing").click()
    row.refresh_from_db()
    assert row.params == {"needed": "as JSON", "days": 3}
    # After saving, the page has the inputs of the new target. Inputs with the same names keep their values.
    page.get_by_label("Worker:").select_option(other)
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator("[data-param=days]")).to_have_count(0)
    expect(page.locator("[data-param=order] .errorlist")).to_contain_text("must be given")
    page.get_by_label("order").fill("A1")
    page.get_by_role("button", name="Save and continue editing").click()
    row.refresh_from_db()
    assert row.params == {"needed": "as JSON", "order": "A1"}


def test_parameters_for_one_run(visit: Visit, many: int) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    row = SchedulerFactory(schedule="0 8 * * *", worker_id=many, params={"needed": "x", "token": "s3cret"})
    page = visit("olga")
    page.goto(reverse("admin:scheduling_scheduler_run", args=[row.pk]))
    assert "s3cret" not in page.content()
    page.get_by_label("needed").fill("")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("[data-param=needed] .errorlist")).to_contain_text("must be given")
    picture(page, "run")
    page.get_by_label("needed").fill("once")
    assert not SchedulerExecution.objects.exists()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_contain_text(re.compile(r"no\. \d+"))
    assert SchedulerExecution.objects.get().params == {"needed": "once", "token": "s3cret"}
    row.refresh_from_db()
    assert row.params == {"needed": "x", "token": "s3cret"}


def test_pause_with_a_reason_and_resume(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE, "scheduling.view_dashboard"])
    row = SchedulerFactory(description="Invoices")
    page = visit("olga")
    page.goto(reverse("admin:scheduling_dashboard_changelist"))
    page.get_by_role("link", name="Pause Invoices").click()
    page.get_by_label("Reason").fill("the warehouse moves")
    picture(page, "pause")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    expect(page.get_by_text("the warehouse moves")).to_be_visible()
    picture(page, "paused-dashboard")
    page.goto(reverse("admin:scheduling_scheduler_changelist"))
    expect(page.locator("#result_list")).to_contain_text("the warehouse moves")
    page.goto(reverse("admin:scheduling_scheduler_change", args=[row.pk]))
    expect(page.locator(".sch-strip")).to_contain_text("the warehouse moves")
    picture(page, "paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 schedule was resumed.")
    expect(page.locator(".sch-strip")).not_to_contain_text("the warehouse moves")
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (True, "")


@pytest.mark.parametrize("script", [True, False])
def test_the_reason_of_a_pause_is_asked_once_the_box_is_ticked(visit: Visit, script: bool) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(description="Stock")
    page = visit("ada", script=script)
    page.goto(reverse("admin:scheduling_scheduler_edit", args=[row.pk]))
    box, reason = page.get_by_label("Paused"), page.get_by_label("Reason for the pause")
    expect(box).not_to_be_checked()
    expect(reason).to_be_hidden()
    box.check()
    expect(reason).to_be_visible()
    reason.fill("the bank is closed")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".sch-strip")).to_contain_text("the bank is closed")
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (False, "the bank is closed")


def test_duplicate_history_and_recent_runs(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(description="Invoices", timezone="Europe/Madrid")
    for seconds in range(1, 31):
        started = clock.now() - timedelta(seconds=600 - seconds)
        SchedulerExecutionFactory(
            scheduler=row, started_at=started, finished_at=started + timedelta(seconds=5 + seconds * 7 % 11),
            **{"failed" if seconds % 9 == 0 else "succeeded": True},
        )  # fmt: skip
    page = visit("ada")
    page.goto(reverse("admin:scheduling_scheduler_change", args=[row.pk]))
    bars = page.locator(".sch-recent").get_by_role("group", name=re.compile("Last 30 runs: "))
    expect(bars).to_be_visible()
    assert bars.locator("rect").count() == 30
    picture(page, "recent")
    page.get_by_role("link", name="Duplicate").click()
    expect(page.locator(".sch-note").first).to_contain_text("A copy of “Invoices”.")
    expect(page.get_by_label("Description:")).to_have_value("Invoices (copy)")
    expect(page.get_by_label("Paused")).to_be_checked()
    picture(page, "duplicate")
    page.get_by_label("Schedule:", exact=True).fill("0 9 * * *")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist .success")).to_contain_text("was added successfully")
    copied = Scheduler.objects.get(description="Invoices (copy)")
    assert (copied.status, copied.schedule, copied.timezone) == (False, "0 9 * * *", "Europe/Madrid")
    page.get_by_label("Schedule:", exact=True).fill("0 10 * * *")
    page.get_by_label("Reason for the pause").fill("not yet")
    page.get_by_role("button", name="Save and continue editing").click()
    page.get_by_role("link", name="History").click()
    entries = page.locator(".sch-history .sch-table")
    edit = entries.first.locator("tbody tr")  # the newest comes first
    expect(edit.nth(0)).to_contain_text("not yet")
    expect(edit.nth(1)).to_contain_text(re.compile(r"Schedule\s+0 9 \* \* \*\s+0 10 \* \* \*"))
    expect(page.locator(".sch-history")).to_contain_text("Added as a copy of schedule")
    picture(page, "history")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_every_part_fits_its_window(visit: Visit, many: int, scheme: str, width: int) -> None:
    UserFactory(username="ada", superuser=True)
    hostile = "<script>alert(1)</script>" + "wide" * 40
    row = SchedulerFactory(
        worker_id=many, params={"needed": hostile, "tags": [hostile]}, description=hostile,
        timezone="America/Argentina/ComodRivadavia", schedule="*/20 1,2 * * *", status=False, pause_reason=hostile,
    )  # fmt: skip
    # A handler may have known this parameter when it was stored.
    Scheduler.objects.filter(pk=row.pk).update(params={**row.params, hostile: hostile})
    SchedulerExecutionFactory.create_batch(4, scheduler=row, failed=True)
    page = visit("ada", scheme, width)
    page.goto(reverse("admin:scheduling_scheduler_edit", args=[row.pk]))
    page.get_by_text("Syntax").click()
    page.get_by_text("Build an interval").click()
    page.locator("details.sch-every").get_by_label("Unit").select_option("w")
    page.get_by_label("Time zone:").fill("Europe/Madrid")
    expect(page.locator(".sch-clock-notes li")).to_have_count(2)
    assert overflow(page) <= 0
    picture(page, f"change-{scheme}-{width}")
    expect(page.locator("textarea[name=params]")).to_be_visible()
    page.get_by_label("Description:").fill("Renamed")
    page.get_by_role("button", name="Save and continue editing").click()
    for name in ("run", "resume", "history"):
        page.goto(reverse(f"admin:scheduling_scheduler_{name}", args=[row.pk]))
        assert overflow(page) <= 0, name
        picture(page, f"{name}-{scheme}-{width}")
    page.goto(f"{ADD}?copy={row.pk}")
    assert overflow(page) <= 0


@pytest.mark.parametrize(("zone", "shown"), [("Europe/Madrid", False), ("Asia/Tokyo", True)])
def test_times_are_shown_once_if_the_viewer_is_in_the_zone_of_the_schedule(
    visit: Visit, zone: str, shown: bool
) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(timezone="Europe/Madrid")
    page = visit("ada", zone=zone)
    page.goto(reverse("admin:scheduling_scheduler_change", args=[row.pk]))
    table = page.get_by_role("table", name="Next runs")
    expect(table.locator("thead th:visible")).to_have_count(3 if shown else 2)
    expect(table.locator("tbody tr:first-child td:visible")).to_have_count(3 if shown else 2)
