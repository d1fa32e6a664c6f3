"""The pages that the screenshots show: every address of the admin, and further scenes that need a query or a click."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NamedTuple

from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.text import slugify
from django.utils.translation import gettext
from playwright.sync_api import Page

from scheduling.models import Alert, AlertRule, Channel, DeathRecord, Deployment, Scheduler
from tests.admin.addresses import every_address
from tests.admin.rows import Rows
from tests.admin.screenshots.batches import batch_pages
from tests.admin.screenshots.rules import rule_pages

FRAGMENTS = (
    "part",
    "preview",
    "changes",
    "params",
    "follow",
    "output",
    "download",
    "keys",
    "logout",
    "jsi18n",
    "autocomplete",
)
"""An address whose name ends with one of these words returns a file or a part of a page, or ends the session."""


SERVICE = "Listen for events of the warehouse"

SHOWN = (
    "Customers export",
    "Exchange rates, second source",
    "Archive log files of the test machines",
    "Nightly stock comparison, shard 1",
    "Rebuild the search index",
    "Import orders UK",
    SERVICE,
)
"""Schedules of further states: paused, never ran, skipped, running, slower than usual, a service."""


def stay(page: Page) -> None:
    """The scene is the page as it was loaded."""


class Scene(NamedTuple):
    """One kind of page: its name in the files, its path, and what to click there."""

    name: str
    path: str
    steps: Callable[[Page], None] = stay


def every_page(rows: Rows, client: Client) -> Iterator[Scene]:
    """The pages of the admin that the client can open. The page of an execution comes once for each state.

    Django's own pages of users and groups are left out, except for the lists.
    """
    seen = set()
    for address in every_address(rows):
        name = address.name.removeprefix("scheduling_") or "root"
        if name.endswith(FRAGMENTS) or address.path == "/favicon.ico":
            continue
        if address.app == "auth" and not name.endswith("changelist"):
            continue
        if address.name == "scheduling_schedulerexecution_change":
            name = f"{name}-{address.row.state}"  # type: ignore[union-attr]
        if name not in seen and client.get(address.path).status_code == 200:
            seen.add(name)
            yield Scene(name, address.path)


def further_scenes() -> Iterator[Scene]:
    """Lists with filters, empty lists, open menus, confirmation pages and forms with errors."""
    inbox, runs = _list("failedexecution"), _list("schedulerexecution")
    schedules, add = _list("scheduler"), reverse("admin:scheduling_scheduler_add")
    yield Scene("inbox-each", f"{inbox}?group=each")
    yield Scene("inbox-filtered", f"{inbox}?group=each&type=worker&age=24h")
    yield Scene("inbox-nothing-found", f"{inbox}?group=each&q=nowhere")
    yield Scene("inbox-row-menu", f"{inbox}?group=each", _open("#result_list tbody .sch-menu > summary"))
    yield Scene("inbox-ticked", f"{inbox}?group=each", _tick)
    yield Scene("inbox-republish-a-group", f"{inbox}?group=error", _act("republish_selected"))
    yield Scene("inbox-discard-a-group", f"{inbox}?group=error", _act("discard_selected"))
    edited = Scheduler.objects.get(description="Import orders DE")
    edit = reverse("admin:scheduling_scheduler_edit", args=[edited.pk])
    yield Scene("schedule-what-changes", edit, _another_time)
    asked = reverse("admin:scheduling_scheduler_backfill", args=[edited.pk])
    yield Scene("schedule-backfill-dry-run", asked, _press("Show what would run"))
    yield Scene("runs-filtered", f"{runs}?state=succeeded&took=slow")
    yield Scene("runs-nothing-found", f"{runs}?q=nowhere")
    yield Scene("runs-state-menu", runs, _filters("State"))
    yield Scene("runs-time-menu", runs, _filters("Time"))
    yield Scene("runs-help", runs, _help)
    review = _list("review")
    yield Scene("review-quarter", f"{review}?from={clock.now() - timedelta(days=89):%Y-%m-%d}")
    yield Scene("review-nothing", f"{review}?from=2020-03-02&to=2020-03-08")
    yield Scene("review-wrong", f"{review}?from=2020-03-02&to=yesterday")
    leader, member = batch_pages()
    yield Scene("batch-leader", leader)
    yield Scene("batch-member", member)
    yield Scene("schedules-failing", f"{schedules}?health=failing")
    yield Scene("schedules-nothing-found", f"{schedules}?q=nowhere")
    yield Scene("schedules-pause", schedules, _pause)
    yield Scene("schedule-wrong", add, _save_wrong)
    for name in SHOWN:
        row = Scheduler.objects.get(description=name)
        yield Scene(f"schedule-{slugify(name)}", reverse("admin:scheduling_scheduler_change", args=[row.pk]))
    paused = Scheduler.objects.filter(status=False).latest("pk")
    yield Scene("schedule-resume", reverse("admin:scheduling_scheduler_resume", args=[paused.pk]))
    orders = Scheduler.objects.get(description="Import orders DE")
    yield Scene("schedule-copy", f"{add}?copy={orders.pk}")
    why = reverse("admin:scheduling_scheduler_why", args=[orders.pk])
    yield Scene("schedule-why-answered", f"{why}?at=03:00")
    yield from (Scene(name, path) for name, path in rule_pages())
    bounded = Scheduler.objects.get(waiting_run__isnull=False)
    yield Scene("bounds-schedule", reverse("admin:scheduling_scheduler_change", args=[bounded.pk]))
    yield Scene("bounds-edit", reverse("admin:scheduling_scheduler_edit", args=[bounded.pk]))
    yield Scene("bounds-run-now", reverse("admin:scheduling_scheduler_run", args=[bounded.pk]))
    waits = reverse("admin:scheduling_schedulerexecution_change", args=[bounded.waiting_run])
    yield Scene("bounds-waiting-run", waits)
    moved = DeathRecord.objects.latest("pk").execution_id
    yield Scene("run-x-death", reverse("admin:scheduling_schedulerexecution_change", args=[moved]))
    service = Scheduler.objects.get(description=SERVICE)
    yield Scene("schedule-edit-service", reverse("admin:scheduling_scheduler_edit", args=[service.pk]))
    for word, pk in (("run", service.open_run), ("left-out", service.open_skip)):
        yield Scene(f"service-{word}", reverse("admin:scheduling_schedulerexecution_change", args=[pk]))
    yield from _alerts()
    yield Scene("calendar-syntax", reverse("admin:scheduling_calendar_add"), _open(".sch-legend > summary"))
    yield Scene("calendar-wrong", reverse("admin:scheduling_calendar_add"), _save_wrong_calendar)
    token = reverse("admin:scheduling_apitoken_add")
    yield Scene("apitoken-secret", token, _make_token)
    yield Scene("nowhere", f"{reverse('admin:index')}nowhere/")
    # The last scenes: from here on, nothing runs.
    yield Scene("deployment-held", reverse("admin:scheduling_deployment_changelist"), _hold)
    yield Scene("dashboard-held", reverse("admin:index"))
    yield Scene("schedules-held", schedules)


def _alerts() -> Iterator[Scene]:
    alerts, rules = _list("alert"), reverse("admin:scheduling_alertrule_add")
    yield Scene("alerts-over", f"{alerts}?state=over")
    yield Scene("alerts-all", f"{alerts}?state=all")
    yield Scene("alerts-nothing-found", f"{alerts}?q=nowhere")
    yield Scene("alerts-ticked", alerts, _tick)
    rows = {"muted": Alert.objects.exclude(muted_until=None), "over": Alert.objects.exclude(ended_at=None)}
    for state, found in rows.items():
        yield Scene(f"alert-{state}", reverse("admin:scheduling_alert_change", args=[found.latest("pk").pk]))
    yield Scene("alertrule-new-not-finished", f"{rules}?kind=not_finished")
    yield Scene("alertrule-wrong", f"{rules}?kind=not_started", _save_wrong_rule)
    yield Scene("alerts-no-channel", alerts, _no_channel)
    yield Scene("alertrules-no-channel", _list("alertrule"))


def _save_wrong_calendar(page: Page) -> None:
    page.locator("#id_name").fill("Holidays FR")
    page.locator("#id_entries").fill("every 07-14 Bastille Day\n25.12.2026 Noël\nsat 09:00")
    _submit(page, "Save and continue editing")


def _save_wrong_rule(page: Page) -> None:
    page.locator("#id_name").fill("Orders start late")
    page.get_by_label(gettext("After the due time")).fill("3s")
    _submit(page, "Save and continue editing")


def _no_channel(page: Page) -> None:
    """Let no rule tell a channel, and no alert be open."""
    Channel.objects.update(tells_by_default=False)
    AlertRule.channels.through._default_manager.all().delete()
    Alert.objects.update(ended_at=clock.now(), open_key=None)
    page.reload()


def _make_token(page: Page) -> None:
    page.locator("#id_name").fill("nightly import")
    _submit(page, "Save")


def _list(model: str) -> str:
    return reverse(f"admin:scheduling_{model}_changelist")


def _open(selector: str) -> Callable[[Page], None]:
    return lambda page: page.locator(selector).first.click()


def _act(action: str) -> Callable[[Page], None]:
    def press(page: Page) -> None:
        with page.expect_navigation():
            page.locator(f"button[value={action}]").first.click()

    return press


def _press(button: str) -> Callable[[Page], None]:
    return lambda page: _submit(page, button)


def _submit(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=gettext(button)).first.click()


def _filters(name: str) -> Callable[[Page], None]:
    def show(page: Page) -> None:
        page.evaluate("document.querySelector('.sch-bar-button').open = true")
        page.locator(".sch-filters summary", has_text=gettext(name)).first.click()

    return show


def _tick(page: Page) -> None:
    for number in range(3):
        page.locator("#result_list tbody input[type=checkbox]").nth(number).check()


def _help(page: Page) -> None:
    page.get_by_role("button", name=gettext("Keyboard shortcuts")).click()


def _pause(page: Page) -> None:
    _tick(page)
    page.locator("select[name=action]").select_option(label=gettext("Pause selected"))
    _submit(page, "Go")


def _save_wrong(page: Page) -> None:
    page.locator("#id_description").fill("Import orders NL")
    page.locator("#id_worker").select_option(label="Import orders")
    page.locator("#id_schedule").fill("61 8 * * 1-5")
    page.locator("#id_timezone").fill("Berlin")
    page.get_by_label("since_days").fill("700")
    _submit(page, "Save and continue editing")


def _hold(page: Page) -> None:
    """Make the database that of another deployment."""
    Deployment.objects.update(name="production", fingerprints="0" * 32)
    page.reload()


def _another_time(page: Page) -> None:
    page.fill("#id_schedule", "30 2,14 * * *")
    page.wait_for_selector(".sch-run-added, .sch-run-changed, .sch-run-removed")
