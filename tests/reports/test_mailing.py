"""A report is mailed to the recipients of its schedule: attached if it is small, else with a link."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

from reports.mailing import AttachmentLimits, letter_of
from scheduling.core.outcome import NonRetryableError
from scheduling.models import Artefact, Notification, SchedulerExecution
from tests.factories import ManualExecutionFactory, ReportFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.notify.mail_server import Mailbox, mail_server
from tests.reports.support import artefact_of, run_of
from tests.support import Commands, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """Provide a mail server."""
    with mail_server() as found:
        yield found


def reported(commands: Commands, mailbox: Mailbox, delivery: dict[str, Any], **environment: str) -> SchedulerExecution:
    """Run a report with these delivery options, and return its execution."""
    params = {"options_interface": {"delivery": delivery}}
    report = ReportFactory(controller="tests.tokens")
    schedule = SchedulerFactory(
        rare=True, worker=None, report=report, params=params, max_retries=3, retry_delay_ms=1000, language="de"
    )
    run = ManualExecutionFactory(scheduler=schedule, params=params)
    url = f"smtp://127.0.0.1:{mailbox.port}"
    worker = commands.start("run_worker", EMAIL_URL=url, DEFAULT_FROM_EMAIL="cron@example.com", **environment)

    def ended() -> SchedulerExecution | None:
        return SchedulerExecution.objects.filter(pk=run.pk, state__in=["succeeded", "failed"]).first()

    found = wait_for(ended, "the run ends")
    commands.stop(worker)
    assert found is not None
    return found


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.parametrize("format_", ["csv", "xlsx"])
def test_a_mailed_report_arrives_as_it_is_stored(commands: Commands, mailbox: Mailbox, format_: str) -> None:
    delivery = {"recipients": ["anna@example.com", "ben@example.com"], "format": format_, "filename": "tokens"}
    run = reported(commands, mailbox, delivery, CRON_SITE_URL="https://cron.example.com")
    assert run.state == "succeeded", run.error_message
    artefact = Artefact.objects.get(execution=run.pk)
    for address in ("anna@example.com", "ben@example.com"):
        (message,) = mailbox.to(address)
        assert message["Subject"].endswith(f"tokens.{format_}")
        (attached,) = [part for part in message.walk() if part.get_filename()]
        assert attached.get_filename() == f"tokens.{format_}"
        content = attached.get_payload(decode=True)
        assert isinstance(content, bytes)
        assert hashlib.sha256(content).hexdigest() == artefact.checksum
        (text,) = [part for part in message.walk() if part.get_content_type() == "text/plain"]
        said = text.get_payload(decode=True)
        assert isinstance(said, bytes)
        assert f"SHA-256: {artefact.checksum}" in said.decode()
        assert f"https://cron.example.com/admin/scheduling/artefact/{artefact.pk}/change/" in said.decode()
        if format_ == "xlsx":
            rows = CalamineWorkbook.from_filelike(BytesIO(content)).get_sheet_by_index(0).to_python()
            assert rows[:2] == [["user", "refreshed"], ["ann", 1.0]]
    assert set(Notification.objects.values_list("state", flat=True)) == {"sent"}


@pytest.mark.processes
@pytest.mark.any_database
def test_a_retry_of_a_report_mails_only_what_is_left(commands: Commands, mailbox: Mailbox) -> None:
    mailbox.answers = {"gone@example.com": "550 no such user"}
    run = reported(commands, mailbox, {"recipients": "anna@example.com, gone@example.com"})
    assert run.state == "failed"
    assert "1 of 2 recipients cannot get the message. gone@example.com" in run.error_message
    assert [address for address, _message in mailbox.accepted] == ["anna@example.com"]


def test_a_large_report_is_linked(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    artefact = artefact_of(SchedulerExecutionFactory(succeeded=True), size=AttachmentLimits.attached_bytes + 1, rows=9)
    run = run_of()
    settings.CRON_SITE_URL = ""
    with pytest.raises(NonRetryableError, match="the setting CRON_SITE_URL is missing"):
        letter_of(run, [artefact], attach=False)
    settings.CRON_SITE_URL = "https://cron.example.com/"
    letter = letter_of(run, [artefact], attach=False)
    assert letter.attachments == []
    assert f"https://cron.example.com/admin/scheduling/artefact/{artefact.pk}/change/" in letter.text
    assert "They ask for a login." in letter.text
