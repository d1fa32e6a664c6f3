"""Sends a message of an execution to many recipients, and records what each of them got.

The record makes a retry harmless: a recipient who has the message gets no second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from django.db.models import F
from django.utils import timezone as clock

from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.text import visible_text
from scheduling.handlers.run import Run
from scheduling.models.notification import ERROR_LENGTH, RECIPIENT_LENGTH, Notification
from scheduling.notify.email import Letter, Mailer, NotSent, Refused, Unreachable, Unsure, message_id

EMAIL = "email"
MOST_UNSURE = 2
"""After so many messages without an answer, the server is left alone until the next attempt."""

State = Notification.State


@dataclass(frozen=True)
class Recipient:
    """A person or an address that gets the message.

    Args:
        address: the e-mail address. It is also the name of the recipient in the record.
        name: the name of the user, if the recipient is one.
        problem: why this recipient cannot get a message; empty if it can.
    """

    address: str
    name: str = ""
    problem: str = ""


def send_to_all(run: Run, recipients: Sequence[Recipient], letter: Callable[[Recipient], Letter]) -> int:
    """Send the letter to each recipient who does not have it yet. Returns how many got it in this attempt.

    Args:
        letter: writes the letter to one recipient.

    Raises:
        RetryableError: the server did not take some of the messages. The next attempt sends only these.
        NonRetryableError: some recipients were refused for good, and all others have the message; or there is no
            recipient.
    """
    if not recipients:
        raise NonRetryableError("There is no recipient: no address is given, and no chosen user is active.")
    rows = _rows(run, recipients)
    sent = unsure = 0
    with Mailer() as mailer:
        for recipient in recipients:
            row = rows[_key(recipient)]
            if not _is_due(row, run) or not _begin(run, row):
                continue
            state, go_on = _send(mailer, run, row, recipient, letter)
            sent += state == State.SENT
            unsure += state == State.SENDING
            if not go_on or unsure >= MOST_UNSURE:
                break
            run.progress(sent, len(recipients), "sent")
    run.log.info("Sent to %d of %d recipients", sent, len(recipients))
    _conclude(run, rows)
    return sent


def _is_due(row: Notification, run: Run) -> bool:
    """Whether the recipient gets the message in this attempt. A refused one is tried again after a republish only."""
    return row.state != State.SENT and not (row.state == State.REFUSED and run.retry_count)


def _key(recipient: Recipient) -> str:
    return sha256(recipient.address.casefold().encode(errors="replace")).hexdigest()


def _rows(run: Run, recipients: Iterable[Recipient]) -> dict[str, Notification]:
    """The records of the recipients. Missing records are made first, so the page of the run shows all recipients.

    A recipient of an earlier attempt who was removed since is left out: the run does not wait for this recipient.
    """
    now = clock.now()
    made = [
        Notification(
            execution_id=run.execution_id, channel=EMAIL, key=_key(recipient), state=State.WAITING,
            recipient=visible_text(recipient.address, RECIPIENT_LENGTH), message_id=_message_id(run, recipient),
            attempt=run.attempt, changed_at=now,
        )
        for recipient in recipients
    ]  # fmt: skip
    Notification.objects.bulk_create(made, ignore_conflicts=True)
    found = Notification.objects.filter(execution=run.execution_id, channel=EMAIL, key__in=[row.key for row in made])
    return {row.key: row for row in found}


def _message_id(run: Run, recipient: Recipient) -> str:
    # The execution key makes the id unique, also after the database was set up anew and counts from 1 again.
    name = sha256(f"{run.execution_key}\n{recipient.address}".encode(errors="replace")).hexdigest()[:24]
    return message_id(f"{run.type}-{run.execution_id}-{name}")


def _begin(run: Run, row: Notification) -> bool:
    """Record that the message is being sent. Returns False if a later attempt has taken over the recipient."""
    unsure = 1 if row.state == State.SENDING else 0
    found = Notification.objects.filter(pk=row.pk, attempt__lte=run.attempt).exclude(state=State.SENT)
    return bool(
        found.update(
            state=State.SENDING, attempt=run.attempt, tries=F("tries") + 1, unsure=F("unsure") + unsure, error="",
            changed_at=clock.now(),
        )
    )  # fmt: skip


def _send(
    mailer: Mailer, run: Run, row: Notification, recipient: Recipient, letter: Callable[[Recipient], Letter]
) -> tuple[Notification.State, bool]:
    """Send one message and record the result. Returns the state, and whether the server can take further messages."""
    state, error, go_on = State.SENT, "", True
    try:
        if recipient.problem:
            raise Refused(recipient.problem)
        mailer.send(recipient.address, letter(recipient), row.message_id)
    except Refused as refused:
        state, error = State.REFUSED, str(refused)
    except NotSent as not_sent:
        state, error, go_on = State.WAITING, str(not_sent), not isinstance(not_sent, Unreachable)
    except Unsure as unsure:
        state, error = State.SENDING, str(unsure)
    # A later attempt that has taken over the recipient records its own result.
    rows = Notification.objects.filter(pk=row.pk, state=State.SENDING, attempt=run.attempt)
    rows.update(state=state, error=error[:ERROR_LENGTH], changed_at=clock.now())
    return state, go_on


def _conclude(run: Run, rows: dict[str, Notification]) -> None:
    """Raise the error that the attempt ends with, if some recipients did not get the message."""
    now = list(Notification.objects.filter(pk__in=[row.pk for row in rows.values()]).order_by("pk"))
    left = [row for row in now if row.state in (State.WAITING, State.SENDING)]
    if left:
        raise RetryableError(_said(left, len(now), "did not get the message"))
    refused = [row for row in now if row.state == State.REFUSED]
    if refused:
        raise NonRetryableError(_said(refused, len(now), "cannot get the message"))


def _said(rows: Sequence[Notification], total: int, what: str) -> str:
    named = "; ".join(f"{row.recipient}: {row.error or 'no answer'}" for row in rows[:3])
    more = f"; and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"{len(rows)} of {total} recipients {what}. {named}{more}"
