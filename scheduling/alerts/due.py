"""The messages that are due. What waits for a channel without one becomes its next message."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduling.alerts.reading import readable_and_bad
from scheduling.core.alert_retry import MOST_WAIT_SECONDS
from scheduling.core.alert_rules import RuleKind
from scheduling.core.text import visible_text
from scheduling.models import AlertMessage, AlertNotice, Channel

MOST_NOTICES = 10_000
"""One message takes along at most so many notices."""

MOST_CHANNELS = 1_000
NAME_LENGTH = 100

State = AlertMessage.State
UNDER_WAY = (State.WAITING, State.SENDING)


def gather(now: datetime, *, only_holds: bool) -> None:
    """Make a message of the notices of each channel that has no message under way."""
    notices = AlertNotice.objects.filter(message=None)
    under_way = AlertMessage.objects.filter(state__in=UNDER_WAY)
    if only_holds:
        notices, under_way = notices.filter(alert__kind=RuleKind.HOLD), _about_holds(under_way)
    waiting = notices.order_by().values_list("channel", flat=True).distinct()[:MOST_CHANNELS]
    busy = set(under_way.values_list("channel", flat=True))
    idle = Channel.objects.filter(pk__in=[key for key in waiting if type(key) is int and key not in busy])
    named, nameless = readable_and_bad(idle, MOST_CHANNELS, ("pk", "name"))
    for channel, name in [*named, *((pk, "?") for pk in nameless)]:
        keys = list(notices.filter(channel=channel).order_by("pk").values_list("pk", flat=True)[:MOST_NOTICES])
        with transaction.atomic():
            message = AlertMessage.objects.create(
                channel_id=channel, channel_name=visible_text(name)[:NAME_LENGTH], delivery_id=uuid4().hex,
                state=State.WAITING, next_try_at=now, created_at=now,
            )  # fmt: skip
            parts = [keys[start : start + 500] for start in range(0, len(keys), 500)]
            taken = sum(AlertNotice.objects.filter(pk__in=part, message=None).update(message=message) for part in parts)
            if not taken:  # another process has just made a message of them
                message.delete()


def due(now: datetime, *, only_holds: bool) -> list[tuple[int, int | None]]:
    """The primary keys of the messages that are due, and of their channels.

    A time that lies further ahead than a message ever waits was not written by this software, or by a wrong clock.
    """
    too_late = now + timedelta(seconds=2 * MOST_WAIT_SECONDS)
    is_due = Q(next_try_at__lte=now) | Q(next_try_at__gt=too_late) | Q(next_try_at=None)
    rows = AlertMessage.objects.filter(is_due, state__in=UNDER_WAY)
    if only_holds:
        rows = _about_holds(rows)
    return list(rows.order_by("next_try_at", "pk").values_list("pk", "channel")[:MOST_CHANNELS])


def _about_holds(messages: QuerySet[AlertMessage]) -> QuerySet[AlertMessage]:
    """Those that tell of nothing but holds. The messages of the original of a copied database may tell of more."""
    notices = AlertNotice.objects.filter(message=OuterRef("pk"))
    holds, others = notices.filter(alert__kind=RuleKind.HOLD), notices.exclude(alert__kind=RuleKind.HOLD)
    return messages.filter(Exists(holds), ~Exists(others))
