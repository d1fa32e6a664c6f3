"""The record of the recipients belongs to the newest attempt, and to the present recipients."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.core.outcome import RetryableError
from scheduling.models import Notification
from scheduling.notify import outbox
from scheduling.notify.delivery import Letter, NotSent
from scheduling.notify.outbox import Recipient, send_to_all
from tests.factories import SchedulerExecutionFactory
from tests.reports.support import run_of

pytestmark = pytest.mark.django_db

ANNA, BEN = Recipient("anna@example.com"), Recipient("ben@example.com")


class Server:
    """A mail server without a network: it does what `answers` says for an address."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_usable = True
        self.answers: dict[str, Any] = {}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def send(self, to: str, letter: Letter, message_id: str) -> None:
        """Call the answer for the address, if there is one."""
        if to in self.answers:
            self.answers[to]()
        self.sent.append(to)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()
    monkeypatch.setattr(outbox, "Mailer", lambda: found)
    return found


def letter(_recipient: Recipient) -> Letter:
    return Letter("subject", "text")


def busy() -> None:
    raise NotSent("The mail server answered 452: busy")


def test_a_removed_recipient_does_not_hold_back_the_retry(server: Server) -> None:
    execution = SchedulerExecutionFactory(running=True)
    server.answers = {ANNA.address: busy}
    with pytest.raises(RetryableError, match="1 of 2 recipients did not get the message"):
        send_to_all(run_of(execution, attempt=1), [ANNA, BEN], letter)
    assert send_to_all(run_of(execution, attempt=2, retry_count=1), [BEN], letter) == 0
    assert server.sent == [BEN.address]


def test_an_attempt_that_lost_its_lease_changes_no_result_of_the_next_one(server: Server) -> None:
    execution = SchedulerExecutionFactory(running=True)

    def overtaken() -> None:
        """While the first attempt waits for the server, the second one begins with the same recipient."""
        Notification.objects.update(attempt=2, state="sending")
        busy()

    server.answers = {ANNA.address: overtaken}
    with pytest.raises(RetryableError):
        send_to_all(run_of(execution, attempt=1), [ANNA], letter)
    row = Notification.objects.get()
    assert (row.state, row.attempt, row.error) == ("sending", 2, "")
