"""Sends the messages that wait. One channel has one message at a time, so what piles up becomes one message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet

from scheduling.alerts.aside import set_aside
from scheduling.alerts.digest import digest_of
from scheduling.alerts.due import due, gather
from scheduling.alerts.letter import facts_of, letter_of
from scheduling.alerts.step import tried
from scheduling.alerts.tries import Ending, Tries, Try
from scheduling.core import delivery_sentences as say
from scheduling.core.alert_retry import MOST_REPEATS, MOST_TRIES, SENDING_SECONDS, next_try
from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.models import AlertMessage
from scheduling.models.alert_message import ERROR_LENGTH
from scheduling.notify.channels import done_if_lost
from scheduling.processes.database import is_away

log = get_logger(__name__)

NEEDED = (
    "state", "tries", "repeats", "delivery_id", "created_at", "channel", "channel__kind", "channel__address",
    "channel__secret", "channel__recipients",
)  # fmt: skip
"""The columns with which a message is sent. An unreadable value in another column does no harm."""

State = AlertMessage.State

Now = Callable[[], datetime]


@dataclass(frozen=True)
class Claim:
    """A message that this process is sending.

    Args:
        tries: the number of this try. A try of another process would have another number.
        repeats: how many of the tries before ended without an answer.
    """

    pk: int
    tries: int
    repeats: int
    created_at: datetime


class Sender:
    """Sends the messages that wait, each channel in a thread of its own.

    The row says SENDING before the message is sent. So a process that is killed meanwhile leaves a mark, and the
    message is sent once more, and says so.

    Args:
        tries: where the messages are sent.
        now: the time of the database.
    """

    def __init__(self, tries: Tries[Claim], now: Now) -> None:
        self._tries, self._now = tries, now
        self._unrecorded: list[tuple[Claim, Ending]] = []
        """Endings that the database did not take yet."""

    @property
    def idle(self) -> bool:
        """Whether no message is being sent and no ending waits for the database."""
        return self._tries.idle and not self._unrecorded

    def record(self) -> int:
        """Record the tries that have ended. Returns how many messages were sent. It needs no lease.

        Raises:
            django.db.DatabaseError: the database cannot be reached. The endings are recorded later.
        """
        self._unrecorded += self._tries.ended()
        sent = 0
        while self._unrecorded:
            claim, ending = self._unrecorded[0]
            try:
                _record(claim, ending, self._now())
            except Exception as error:
                if is_away(error):
                    raise
                log.exception("The end of a message of alerts cannot be recorded")
            del self._unrecorded[0]
            sent += not ending.error
        return sent

    def adopt(self, claim: Claim, ending: Ending) -> None:
        """Take over the end of a try that another part of this process has begun. `record` records it."""
        self._unrecorded.append((claim, ending))

    def begin(self, may_go_on: Callable[[], bool], *, only_holds: bool = False) -> None:
        """Begin to send what is due.

        Args:
            may_go_on: asked before each message: whether this process still holds the lease and does not stop.
            only_holds: tell only of alerts that say that the processes hold. All other alerts may be those of another
                deployment, whose database was copied.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        now = self._now()
        gather(now, only_holds=only_holds)
        for pk, channel in due(now, only_holds=only_holds):
            if not self._tries.has_room:
                break
            if self._tries.calls(channel or 0):
                continue
            if not may_go_on():
                break
            self._set_aside_if_bad(pk)

    def _set_aside_if_bad(self, pk: int) -> None:
        """Begin to send one message. A row that cannot be used is given up, with the reason."""
        try:
            self._begin(pk)
        except Exception as error:
            if is_away(error):
                raise
            log.exception("A message of alerts cannot be used")
            row, why = AlertMessage.objects.filter(pk=pk), f"{type(error).__name__}: {error}"
            refused = tried(lambda: _give_up(row, why, self._now()))
            if refused is not None:  # MariaDB changes no row with broken JSON, so that is replaced, too
                refused = tried(lambda: _give_up(row, why, self._now(), done=[]))
            if refused is not None:
                log.error("A message of alerts cannot be given up: %s", refused)

    def _begin(self, pk: int) -> None:
        message = AlertMessage.objects.only(*NEEDED).select_related("channel").filter(pk=pk).first()
        if message is None:
            return
        now = self._now()
        lost = message.state == State.SENDING
        repeats = message.repeats + lost
        own = AlertMessage.objects.filter(pk=pk, state=message.state, tries=message.tries)
        if problem := _problem(message, repeats):
            _give_up(own, problem, now)
            return
        set_aside(message, now)  # if nothing is left, `own` has no row any more
        digest = digest_of(message)
        if not digest.count or message.channel is None:
            _give_up(own, "Its alerts were removed, so there is nothing to tell.", now)
            return
        done = _done(pk)
        known = sorted(done_if_lost(message.channel, done)) if lost else done
        one = Try(message.channel, letter_of(digest, repeats), facts_of(digest, repeats), message.delivery_id, known)
        lost_at = now + timedelta(seconds=SENDING_SECONDS)
        begun = {"state": State.SENDING, "tries": F("tries") + 1, "repeats": repeats, "next_try_at": lost_at}
        if known != done:
            begun["done"] = known
        if own.update(**begun):
            self._tries.begin(Claim(pk, message.tries + 1, repeats, message.created_at), one)


def _problem(message: AlertMessage, repeats: int) -> str:
    """Why this message is not sent any more; empty if it can be sent."""
    if message.channel is None:
        return say.CHANNEL_DELETED.format()
    if message.tries >= MOST_TRIES:
        return say.TRIED_TOO_OFTEN.format()
    if repeats > MOST_REPEATS:
        return say.TWO_WITHOUT_ANSWER.format()
    return ""


def _done(pk: int) -> list[str]:
    """What is known of the addresses. Plain SQL may have written anything."""
    try:
        found = AlertMessage.objects.filter(pk=pk).values_list("done", flat=True).first()
    except ValueError:
        return []
    return [address for address in found if isinstance(address, str)] if isinstance(found, list) else []


def _record(claim: Claim, ending: Ending, now: datetime) -> None:
    """Record how a try has ended, unless a later try has begun."""
    own = AlertMessage.objects.filter(pk=claim.pk, state=State.SENDING, tries=claim.tries)
    repeats = claim.repeats + ending.unsure
    done = sorted({*_done(claim.pk), *ending.done})  # an ending that knows less does not make them get it twice
    again = next_try(claim.tries, claim.created_at, now, ending.retry_after, repeats)
    if not ending.error:
        own.update(state=State.SENT, error="", next_try_at=None, ended_at=now, done=done)
    elif ending.given_up or again is None:
        own.update(repeats=repeats, done=done)
        _give_up(own, ending.error, now)
    else:
        own.update(state=State.WAITING, error=text_of(ending.error), next_try_at=again, repeats=repeats, done=done)


def _give_up(own: QuerySet[AlertMessage], error: str, now: datetime, **further: Any) -> None:
    own.update(state=State.GIVEN_UP, error=text_of(error), next_try_at=None, ended_at=now, **further)


def text_of(error: str) -> str:
    """The reason as the column takes it."""
    return visible_text(error, ERROR_LENGTH)[:ERROR_LENGTH]
