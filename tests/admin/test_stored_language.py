"""The pages give what rows store in the language of the reader: here in German."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock
from django.utils import translation

from scheduling.core import delivery_sentences as say
from scheduling.core import outcome, overlap, run_bounds, run_sentences, skip_reasons
from scheduling.core.history_sentences import ALL_FAILURES
from scheduling.core.inbox_sentences import NOT_OVER
from scheduling.core.skip_reasons import SkipReason
from scheduling.models import Deployment, MovedRun, Replay, Scheduler, SchedulerExecution
from scheduling.models.zone_data import ZoneData
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.params_diff import Change
from tests.admin.conftest import logged_in
from tests.factories import (
    AlertFactory,
    AlertMessageFactory,
    AlertNoticeFactory,
    AttemptFactory,
    BackfillFactory,
    BreakerFactory,
    NotificationFactory,
    PauseFactory,
    PingFactory,
    ReminderFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)
from tests.languages.stored_makers import literals, skips
from tests.support import NOON

pytestmark = pytest.mark.django_db

ENGLISH = literals()


@pytest.fixture
def reader() -> Iterator[Client]:
    with translation.override("en"):  # the language of a request stays when it is over
        yield logged_in(UserFactory(superuser=True))


def german(client: Client, address: str, data: dict[str, Any] | None = None) -> str:
    """The text of a page in German, which has no piece of an English stored sentence."""
    response = client.get(address, data or {}, HTTP_ACCEPT_LANGUAGE="de")
    assert response.status_code == 200
    soup = BeautifulSoup(response.content, "html.parser")
    assert soup.html is None or soup.html["lang"] == "de"
    for tag in soup.find_all(["script", "style"]):
        tag.decompose()
    titles = [str(tag["title"]) for tag in soup.find_all(title=True)]
    text = " ".join(" ".join([soup.get_text(" "), *titles]).split())
    assert [piece for piece in ENGLISH if piece in text] == []
    return text


def page(row: SchedulerExecution) -> str:
    return reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])


def changelist(model: str) -> str:
    return reverse(f"admin:scheduling_{model}_changelist")


@pytest.mark.parametrize("kind", SkipReason)
def test_a_skip_of_each_kind(kind: SkipReason, reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON)
    reason = run_bounds.ran_often(5)
    schedule = SchedulerFactory(schedule="0 * * * *", timezone="UTC", status=False, pause_reason=reason)
    Scheduler.objects.update(created_at=NOON - timedelta(days=9), planned_at=NOON - timedelta(days=9))
    row = SchedulerExecutionFactory(
        skipped=True, missed=1, scheduler=schedule, scheduled_at=NOON - timedelta(hours=2), reason=skips()[kind],
        execution_key="cron-2026-3-10-10-0",
    )  # fmt: skip
    words = {
        SkipReason.PAUSED: "Pausiert durch anna", SkipReason.OVERLAP: "Ausgelassen, weil Ausführung 991",
        SkipReason.EXPIRED: "Abgelaufen: Der Lauf hatte 1 Stunde", SkipReason.NOT_NEEDED: "Vom Handler ausgelassen",
        SkipReason.EXCLUDED: "Weihnachten", SkipReason.HELD: "Inventur", SkipReason.PREDECESSOR: "Nicht rechtzeitig",
    }.get(kind, "Verpasst, 3 Termine")  # fmt: skip
    shown = german(reader, page(row))
    assert words in shown
    assert "Er ist 5-mal gelaufen" in shown
    asked = reverse("admin:scheduling_scheduler_why", args=[schedule.pk])
    assert words in german(reader, asked, {"at": "2026-03-10 10:00"})
    german(reader, changelist("schedulerexecution"))


def test_a_pause_by_a_rule(reader: Client) -> None:
    schedule = SchedulerFactory(status=False, pause_reason=run_bounds.failed_in_a_row(3, 7))
    for address in (changelist("scheduler"), changelist("dashboard"), scheduler_page(schedule)):
        assert "3 Fehlschläge hintereinander" in german(reader, address)


@pytest.mark.parametrize("end", [
    outcome.TimedOut(5.0), outcome.Crashed(lost=True), outcome.Crashed(signal=9), outcome.MemoryLimit(64, 80),
], ids=lambda end: str(end.error_class))  # fmt: skip
def test_a_failure(end: outcome.TimedOut | outcome.Crashed | outcome.MemoryLimit, reader: Client) -> None:
    error = {"error_class": end.error_class, "error_message": end.message}
    row = SchedulerExecutionFactory(failed=True, **error)
    AttemptFactory(execution=row, number=4, **error)
    assert "Alle 3 Wiederholungen sind verbraucht." in german(reader, page(row))
    for view in ("each", "error"):
        assert end.error_class in german(reader, changelist("failedexecution"), {"group": view})
    for act in ("republish", "discard"):
        german(reader, reverse(f"admin:scheduling_failedexecution_{act}", args=[row.pk]))


def test_runs_that_wait_or_were_cancelled(reader: Client) -> None:
    blocked = SchedulerExecutionFactory(blocked=True, reason=overlap.blocked_by(7, "replace"))
    cancelled = SchedulerExecutionFactory(cancelled=True, reason=f"Cancelled by {overlap.replaced_by(7)}.")
    running = SchedulerExecutionFactory(running=True, cancel_requested_by=overlap.replaced_by(7))
    assert "Der Lauf ersetzt Ausführung 7" in german(reader, changelist("schedulerexecution"))
    assert "Der Lauf ersetzt Ausführung 7" in german(reader, page(blocked))
    assert "Abgebrochen von der Software: Ausführung 7" in german(reader, page(cancelled))
    assert "die Software (Ausführung 7 ersetzt den Lauf)" in german(reader, page(running))
    german(reader, changelist("dashboard"))


def test_pauses_breakers_and_what_a_user_has_written(reader: Client) -> None:
    PauseFactory(of_site=True, reason="<b>Umzug</b>")
    waits = SchedulerExecutionFactory()
    response = reader.get(page(waits), HTTP_ACCEPT_LANGUAGE="de").content.decode()
    assert "Alles ist durch ann pausiert: &lt;b&gt;Umzug&lt;/b&gt;." in response
    german(reader, page(waits))
    breaker = BreakerFactory(error=f"Crashed: {outcome.Crashed(lost=True).message}")
    for address in (changelist("breaker"), reverse("admin:scheduling_breaker_change", args=[breaker.pk])):
        shown = german(reader, address)
        assert "8 von 10 Läufen" in shown
        assert "Der Consumer hat die Lease nicht mehr verlängert" in shown


def test_backfills_and_replays(reader: Client) -> None:
    backfill = BackfillFactory(note=run_sentences.CANCELLED_BY_COMMAND.format(), state="cancelled")
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by="another user", created_at=clock.now(), selection=ALL_FAILURES.format(),
        state=Replay.State.STOPPED, total=2, reason=NOT_OVER.format(), finished_at=clock.now(),
    )  # fmt: skip
    for model, row, words in (
        ("backfill", backfill, "Abgebrochen durch einen Befehl."),
        ("replay", replay, "Andere Ausführungen der Zeitpläne"),
        ("replay", replay, "alle Fehlschläge des Fehlereingangs"),
    ):
        assert words in german(reader, changelist(model))
        assert words in german(reader, reverse(f"admin:scheduling_{model}_change", args=[row.pk]))


def test_the_history_and_its_page_of_all_objects(reader: Client) -> None:
    user, run, schedule = UserFactory(superuser=True), SchedulerExecutionFactory(failed=True), SchedulerFactory()
    record(Actor(user, "command"), [run], "republish")
    record(Actor(user), [schedule], "", [Change("status", "yes", "no")])
    history = german(reader, reverse("admin:scheduling_schedulerexecution_history", args=[run.pk]))
    activity = german(reader, reverse("admin:scheduling_dashboard_activity"))
    assert "Erneut gesendet (Befehl)" in history
    assert "Erneut gesendet (Befehl)" in activity
    assert "Pausiert: nein ja" in activity


def test_why_a_message_was_not_delivered(reader: Client) -> None:
    alert, run = AlertFactory(told_at=clock.now()), SchedulerExecutionFactory(failed=True)
    SchedulerExecution.objects.filter(pk=run.pk).update(type="reminder")
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(given_up=True))
    PingFactory(execution=run, dropped=True, error=say.MOVED.format(status=302))
    NotificationFactory(execution=run, state="refused", error=say.MAIL_ANSWERED.format(status=550, words="unknown"))
    assert "Der Webhook hat mit 500 geantwortet: kein Text" in german(
        reader, reverse("admin:scheduling_alert_change", args=[alert.pk])
    )
    assert "Der Webhook hat mit 500 geantwortet: kein Text" in german(reader, changelist("dashboard"))
    shown = german(reader, page(run))
    assert "Der Server hat mit 302 geantwortet." in shown
    assert "Der Mailserver hat mit 550 geantwortet: unknown" in shown


def test_a_database_that_is_held(reader: Client) -> None:
    Deployment.objects.update(name="production", fingerprints="0" * 32)
    SchedulerExecutionFactory()
    assert "Die Datenbank gehört zu “production”" in german(reader, changelist("scheduler"))
    assert "1 ( eingereiht 1 )" in german(reader, changelist("deployment"))


def test_a_time_that_is_over_and_the_type_of_a_target(reader: Client) -> None:
    past = clock.now() - timedelta(minutes=2)
    retrying = SchedulerExecutionFactory(retrying=True, wake_at=past)
    blocked = SchedulerExecutionFactory(blocked=True, wake_at=past, waits_for=7)
    assert "Der nächste Versuch ist jetzt fällig." in german(reader, page(retrying))
    assert "Ein Producer prüft den Lauf wieder, sobald er kann." in german(reader, page(blocked))
    SchedulerFactory(worker=None, reminder=ReminderFactory(name="Stand-up"))
    assert "Stand-up Erinnerung" in german(reader, changelist("scheduler"))


def test_a_moved_run_has_the_times_of_all_pages(reader: Client) -> None:
    data = ZoneData.objects.create(digest="0" * 64, version="2026b", offsets={}, first_used_at=NOON)
    row = MovedRun.objects.create(
        zone_data=data, timezone="Europe/Berlin", old_at=NOON, new_at=NOON + timedelta(hours=1), moved_at=NOON
    )
    shown = german(reader, reverse("admin:scheduling_movedrun_change", args=[row.pk]))
    assert "Verschobener Lauf 2026-03-10 12:00 → 2026-03-10 13:00 UTC" in shown
    assert "Bisher geplant: 2026-03-10 13:00 CET" in shown


def test_the_row_and_an_english_page_keep_the_sentence(reader: Client) -> None:
    row = SchedulerExecutionFactory(skipped=True, reason=skip_reasons.left_out(991, False))
    german(reader, page(row))
    row.refresh_from_db()
    assert row.reason == "Left out, because execution 991 was not over."
    assert row.reason in reader.get(page(row), HTTP_ACCEPT_LANGUAGE="en").content.decode()


def scheduler_page(row: Scheduler) -> str:
    return reverse("admin:scheduling_scheduler_change", args=[row.pk])
