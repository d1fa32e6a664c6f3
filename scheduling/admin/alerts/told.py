"""Which channels were told of an alert, and how far the messages have come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Prefetch, QuerySet
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import MESSAGE_STATES, UNKNOWN, badge
from scheduling.admin.ui.times import EMPTY, relative_time
from scheduling.core import alert_mutes
from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertMessage, AlertNotice
from scheduling.models.message_error import message_error
from scheduling.models.visibility import Visibility

MOST_NAMED = 3
"""A list names so many channels of an alert."""
MOST_SHOWN = 50
"""The page of an alert shows so many messages."""

State, Event = AlertMessage.State, AlertNotice.Event


class Told(NamedTuple):
    """The start or the end of an alert, for one channel.

    Args:
        ended_at: when the message was sent or given up; None before.
    """

    channel: str
    event: str
    state: str
    tries: int
    repeats: int
    error: str
    next_try_at: datetime | None
    ended_at: datetime | None

    @property
    def is_sent(self) -> bool:
        """Whether the server has accepted the message."""
        return self.state == State.SENT

    @property
    def chip(self) -> SafeString:
        """The state as a badge."""
        word = dict(State.choices).get(self.state, visible_text(self.state, 20))
        return badge(word, *MESSAGE_STATES.get(self.state, UNKNOWN), self.error)


def with_notices(rows: QuerySet[Alert], visible: Visibility) -> QuerySet[Alert]:
    """The alerts with the notices for channels that are seen. One further query reads those of all rows."""
    notices = AlertNotice.objects.filter(visible.condition("channel__")).select_related("channel", "message")
    notices = notices.only(
        "alert", "event", "channel__name", "message__state", "message__tries", "message__repeats", "message__error",
        "message__next_try_at", "message__ended_at",
    )  # fmt: skip
    notices = notices.annotate(tells_of_others=visible.tells_of_others("message"))
    return rows.prefetch_related(Prefetch("notices", notices.order_by("pk"), to_attr="seen_notices"))


def told_of(row: Any) -> list[Told]:
    """The messages about an alert of `with_notices`. A notice without a message waits for one."""
    return [_told(notice) for notice in row.seen_notices]


def _told(notice: Any) -> Told:
    name, message = visible_text(notice.channel.name, 100), notice.message
    if message is None:
        return Told(name, notice.event, State.WAITING, 0, 0, "", None, None)
    error = message_error(message.error, 400, tells_of_others=notice.tells_of_others)
    return Told(
        name, notice.event, message.state, message.tries, message.repeats, error, message.next_try_at, message.ended_at
    )


def told_cell(row: Alert, now: datetime) -> SafeString | str:
    """The channels of an alert for a list: the latest news of each."""
    latest = {told.channel: told for told in told_of(row)}
    if not latest:
        return not_told(row, now)
    lines = [
        format_html('<span class="sch-told">{}{}</span>', told.channel, "" if told.is_sent else told.chip)
        for told in list(latest.values())[:MOST_NAMED]
    ]
    more = len(latest) - len(lines)
    if more:
        lines.append(format_html('<span class="sch-quiet">{}</span>', _("and %(count)s more") % {"count": more}))
    return format_html_join("", "{}", ((line,) for line in lines))


def not_told(row: Alert, now: datetime) -> str:
    """Why no channel that is seen was told."""
    if row.told_at is not None:
        return _("channels of other groups")
    if is_muted(row, now):
        return _("no channel: it is muted")
    if row.ended_at is not None:
        return _("no channel")
    return _("no channel yet")


def is_muted(row: Any, now: datetime) -> bool:
    """Whether an alert or a rule is muted."""
    return alert_mutes.is_muted(row.muted_until, now)


def next_try(told: Told, now: datetime) -> str:
    """When a message is tried again, such as `in 3 min`."""
    if told.next_try_at is None or told.state not in (State.WAITING, State.SENDING):
        return EMPTY
    return relative_time(told.next_try_at, now)


def told_rows(rows: Sequence[Told], now: datetime) -> list[dict[str, Any]]:
    """The lines of the table of messages on the page of an alert."""
    words = dict(Event.choices)
    return [
        {
            "told": told,
            "event": words.get(told.event, visible_text(told.event, 20)),
            "next": next_try(told, now),
            "tries": _tries(told),
        }
        for told in rows[:MOST_SHOWN]
    ]


def _tries(told: Told) -> str:
    if not told.repeats:
        return str(told.tries)
    return _("%(tries)d, %(repeats)d without an answer") % {"tries": told.tries, "repeats": told.repeats}
