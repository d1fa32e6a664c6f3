"""The weekly review: made once and off, mailed with the verdict, and told from the tallies."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from bs4 import BeautifulSoup
from django.apps import apps
from django.db import connection

from reports.delivery import deliver
from reports.delivery_options import DeliveryOptions
from reports.models import Report
from reports.weekly_review import WeeklyReview, WeeklyReviewParams
from scheduling.execution.claim import claim_due
from scheduling.models import Notification, Scheduler
from tests.factories import GroupFactory, SchedulerFactory, TallyFactory, due
from tests.notify.mail_server import Mailbox, mail_server, use
from tests.reports.support import execution_of, run_of

pytestmark = pytest.mark.django_db(transaction=True)

MONDAY = datetime(2026, 3, 30, 8, tzinfo=ZoneInfo("Europe/Berlin"))
MIGRATION = import_module("scheduling.migrations.0001_initial")


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Provide a mail server that Django sends to."""
    with mail_server() as found:
        use(settings, found)
        yield found


def failed(days: float, target: str = "sync", **columns: Any) -> None:
    hour = MONDAY.replace(hour=0) - timedelta(days=days)
    TallyFactory(
        outcome="failed",
        reason="app.<b>Timeout",
        failures=1,
        attempts=4,
        retries=3,
        target=target,
        hour=hour,
        **columns,
    )


def mailed(mailbox: Mailbox, **facts: Any) -> Any:
    """Mail the review of the week before MONDAY, and return the message."""
    run = run_of(execution_of(), name="weekly_review", scheduled_at=MONDAY, **facts)
    deliver(WeeklyReview(), WeeklyReviewParams(), run, DeliveryOptions(recipients=["anna@example.com"]))
    (message,) = mailbox.to("anna@example.com")
    return message


def parts(message: Any) -> dict[str, str]:
    """The texts of the message, by their content type."""
    found = [part for part in message.walk() if not part.is_multipart()]
    texts = {part.get_content_type(): part.get_payload(decode=True).decode("utf-8-sig") for part in found}
    return {type_: text.replace("\r\n", "\n") for type_, text in texts.items()}


def test_the_mail_has_the_verdict_a_page_without_pictures_and_the_file(mailbox: Mailbox, settings: Any) -> None:
    settings.CRON_TIMEZONE = "Europe/Berlin"
    settings.CRON_SITE_URL = "https://cron.example.com"
    for days in (0.5, 3, 7, 7.5, 8, 9, 10, 11):
        failed(days)
    failed(-0.1, "today")
    failed(15, "long ago")
    message = mailed(mailbox)
    assert message["Subject"] == "Weekly review: 3 failures, 2 fewer than in the week before"
    found = parts(message)
    assert found["text/plain"].startswith("Weekly review, 23 Mar 2026 to 29 Mar 2026\n3 failures, 2 fewer")
    assert "app.<b>Timeout" in found["text/plain"]
    assert "/admin/scheduling/review/?from=2026-03-23&to=2026-03-29" in found["text/plain"]
    page = BeautifulSoup(found["text/html"], "html.parser")
    assert page.h1 is not None
    assert page.h1.text == "3 failures, 2 fewer than in the week before"
    assert not page.select("img, script, link, iframe, b")
    assert "SHA-256" in page.text
    assert "url(" not in found["text/html"]
    rows = list(csv.DictReader(io.StringIO(found["application/octet-stream"])))
    assert [row["failures"] for row in rows if row["part"] in ("total", "total_before")] == ["3", "5"]
    assert [row["day"] for row in rows if row["part"] == "day"] == ["2026-03-29", "2026-03-27", "2026-03-23"]
    assert not {"today", "long ago"} & {row["target"] for row in rows}
    assert Notification.objects.get().state == "sent"


def test_without_a_recipient_the_file_is_made_and_nothing_is_mailed(mailbox: Mailbox) -> None:
    run = run_of(execution_of(), name="weekly_review", scheduled_at=MONDAY)
    (artefact,) = deliver(WeeklyReview(), WeeklyReviewParams(), run)
    assert artefact.rows >= 2
    assert not mailbox.to("anna@example.com")


def test_the_review_of_a_group_tells_of_this_group_only(mailbox: Mailbox) -> None:
    own, other = GroupFactory(), GroupFactory()
    SchedulerFactory(group=other)
    failed(1, "mine", group=own.pk)
    failed(1, "theirs", group=other.pk)
    found = parts(mailed(mailbox, group_id=own.pk))
    for text in found.values():
        assert "mine" in text
        assert "theirs" not in text
    assert "Runs of other groups are not counted." in found["text/plain"]


def make() -> None:
    """Do what the migration does."""

    class Editor:
        """Has what the function of a migration uses."""

        def __init__(self) -> None:
            self.connection = connection

    MIGRATION.create_weekly_review(apps, Editor())


def test_the_schedule_is_made_off_and_runs_with_a_recipient(settings: Any) -> None:
    settings.CRON_TIMEZONE = "Europe/Berlin"
    Report.objects.all().delete()
    make()
    row = Scheduler.objects.get()
    assert (str(row), row.schedule, row.timezone, row.status) == ("Weekly review", "0 8 * * 1", "", False)
    assert row.pause_reason == "Add a recipient, then resume."
    assert row.report is not None
    assert row.report.controller == "weekly_review"
    row.params = {"options_interface": {"delivery": {"recipients": ["anna@example.com"]}}}
    row.status = True
    row.save()
    assert row.next_run_at is not None
    local = row.next_run_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.weekday(), local.hour, local.minute) == (0, 8, 0)
    due(row, MONDAY)
    (run,) = claim_due(MONDAY, embedded=True).claimed
    assert run.target_name == "weekly_review"
