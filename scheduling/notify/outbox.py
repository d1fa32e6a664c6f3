"""Sends a message of an execution to many recipients, and records what each of them got.

The record makes a retry harmless: a recipient who has the message gets no second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from django.db.models import F
from django.utils import timezone as clock

from scheduling.core import delivery_sentences as say
from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.stored_sentence import StoredSentence
from scheduling.core.text import visible_text
from scheduling.handlers.run import Run
from scheduling.models.channel import Channel
from scheduling.models.notification import ERROR_LENGTH, RECIPIENT_LENGTH, Notification
from scheduling.notify import channels
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.email import Mailer, message_id

Kind = Notification.Kind
State = Notification.State
Key = tuple[str, str]


@dataclass(frozen=True)
class Recipient:
    """A person, an address or a channel that gets the message.

    Args:
        address: the e-mail address. It is also the name of the recipient in the record.
        name: the name of the user or the channel, if the recipient is one.
        problem: why this recipient cannot get a message; empty if it can.
        channel: the chat or the webhook, if the recipient is one. Such a recipient has no e-mail address.
    """

    address: str
    name: str = ""
    problem: str = ""
    channel: Channel | None = None

    @property
    def key(self) -> Key:
        """What the record of the recipient is found by: the kind of message, and a hash."""
        if self.channel is not None:
            is_webhook = self.channel.kind == Channel.Kind.WEBHOOK
            return Kind.WEBHOOK if is_webhook else Kind.CHAT, _hash(f"channel {self.channel.pk}")
        return Kind.EMAIL, _hash(self.address.casefold())


def _hash(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def send_to_all(
    run: Run,
    recipients: Sequence[Recipient],
    letter: Callable[[Recipient], Letter],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Send the letter to each recipient who does not have it yet. Returns how many got it in this attempt.

    Args:
        letter: writes the letter to one recipient.
        facts: what webhooks get beside the subject and the text.

    Raises:
        RetryableError: a server did not take some of the messages. The next attempt sends only these.
        NonRetryableError: some recipients were refused for good, and all others have the message; or there is no
            recipient.
    """
    if not recipients:
        raise NonRetryableError("There is no recipient: no address is given, and no chosen user is active.")
    rows = _rows(run, recipients)
    sent = 0
    with Mailer() as mailer:
        servers = _Servers(mailer, facts)
        for recipient in recipients:
            row = rows[recipient.key]
            if not servers.are_open_for(recipient) or not _is_due(row, run) or not _begin(run, row):
                continue
            sent += _send(servers, run, row, recipient, letter) == State.SENT
            run.progress(sent, len(recipients), "sent")
    run.log.info("Sent to %d of %d recipients", sent, len(recipients))
    _conclude(rows, servers.retry_after)
    return sent


class _Servers:
    """The mail server and the chat servers. All e-mails have one server, but each channel has a server of its own.

    So a mail server that cannot be reached is left alone for the rest of the attempt, and no chat waits for it.
    `retry_after` is the longest time that a server wants to be left alone, in seconds; None if none has said so.
    """

    def __init__(self, mailer: Mailer, facts: Mapping[str, Any]) -> None:
        self._mailer = mailer
        self._facts = facts
        self.retry_after: float | None = None

    def are_open_for(self, recipient: Recipient) -> bool:
        """Whether a message to this recipient can be tried in this attempt."""
        return recipient.channel is not None or self._mailer.is_usable

    def send(self, recipient: Recipient, letter: Letter, message_id: str) -> None:
        """Send one message.

        Raises:
            Refused, NotSent, Unsure: see there.
        """
        try:
            if recipient.channel is None:
                self._mailer.send(recipient.address, letter, message_id)
            else:
                channels.send(recipient.channel, letter, self._facts, message_id)
        except NotSent as error:
            if error.retry_after is not None:
                self.retry_after = max(error.retry_after, self.retry_after or 0)
            raise


def _is_due(row: Notification, run: Run) -> bool:
    """Whether the recipient gets the message in this attempt. A refused one is tried again after a republish only."""
    return row.state != State.SENT and not (row.state == State.REFUSED and run.retry_count)


def _rows(run: Run, recipients: Iterable[Recipient]) -> dict[Key, Notification]:
    """The records of the recipients. Missing records are made first, so the page of the run shows all recipients.

    A recipient of an earlier attempt who was removed since is left out: the run does not wait for this recipient.
    """
    now = clock.now()
    made = {
        recipient.key: Notification(
            execution_id=run.execution_id, kind=recipient.key[0], key=recipient.key[1], state=State.WAITING,
            recipient=visible_text(recipient.address or recipient.name, RECIPIENT_LENGTH),
            message_id=_message_id(run, recipient), attempt=run.attempt, changed_at=now,
        )
        for recipient in recipients
    }  # fmt: skip
    Notification.objects.bulk_create(made.values(), ignore_conflicts=True)
    found = Notification.objects.filter(execution=run.execution_id, key__in=[key for _kind, key in made])
    return {(row.kind, row.key): row for row in found if (row.kind, row.key) in made}


def _message_id(run: Run, recipient: Recipient) -> str:
    """The Message-ID of an e-mail, or the delivery id of a webhook; empty for a chat, which has nothing like it."""
    if recipient.key[0] == Kind.CHAT:
        return ""
    # The execution key makes the id unique, also after the database was set up anew and counts from 1 again.
    name = _hash(f"{run.execution_key}\n{recipient.address or recipient.key[1]}")[:24]
    if recipient.channel is not None:
        return f"{run.type}-{run.execution_id}-{name}"
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
    servers: _Servers, run: Run, row: Notification, recipient: Recipient, letter: Callable[[Recipient], Letter]
) -> Notification.State:
    """Send one message and record the result. Returns the state."""
    state, error = State.SENT, ""
    try:
        if recipient.problem:
            raise Refused(recipient.problem)
        servers.send(recipient, letter(recipient), row.message_id)
    except Refused as refused:
        state, error = State.REFUSED, str(refused)
    except NotSent as not_sent:
        state, error = State.WAITING, str(not_sent)
    except Unsure as unsure:
        state, error = State.SENDING, str(unsure)
    # A later attempt that has taken over the recipient records its own result.
    rows = Notification.objects.filter(pk=row.pk, state=State.SENDING, attempt=run.attempt)
    rows.update(state=state, error=error[:ERROR_LENGTH], changed_at=clock.now())
    return state


def _conclude(rows: dict[Key, Notification], retry_after: float | None) -> None:
    """Raise the error that the attempt ends with, if some recipients did not get the message."""
    now = list(Notification.objects.filter(pk__in=[row.pk for row in rows.values()]).order_by("pk"))
    left = [row for row in now if row.state in (State.WAITING, State.SENDING)]
    if left:
        raise RetryableError(_said(left, len(now), say.RECIPIENTS_NOT_YET), retry_after=retry_after)
    refused = [row for row in now if row.state == State.REFUSED]
    if refused:
        raise NonRetryableError(_said(refused, len(now), say.RECIPIENTS_NEVER))


def _said(rows: Sequence[Notification], total: int, sentence: StoredSentence) -> str:
    named = say.each_named([(row.recipient, row.error or say.NO_ANSWER) for row in rows])
    return sentence.format(failed=len(rows), total=total, named=named)
