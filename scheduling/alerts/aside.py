"""Sets notices aside that their channel may not be told of any more."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from django.db import transaction
from django.db.models import Q

from scheduling.core import delivery_sentences as say
from scheduling.core.chunks import chunks
from scheduling.models import AlertMessage, AlertNotice, Channel

State = AlertMessage.State


def still_allowed(channel: Channel | None) -> Q:
    """The notices of alerts that this channel may be told of at present (`core.alerts.may_be_told`)."""
    if channel is None or channel.group_id is None:
        return Q()
    return Q(alert__group=None) | Q(alert__group=channel.group_id)


def set_aside(message: AlertMessage, now: datetime) -> None:
    """Set those notices of a message aside whose alert belongs to another group than the channel.

    A notice may wait for hours. Meanwhile the alert or the channel may get another group. A message of its own keeps
    these notices, with the reason. If no notice is left, it is the given message, and it is not sent.
    """
    allowed = still_allowed(message.channel)
    if not allowed:
        return
    notices = AlertNotice.objects.filter(message=message)
    refused = list(notices.exclude(allowed).values_list("pk", flat=True))
    if not refused:
        return
    with transaction.atomic():
        ended = {"state": State.ASIDE, "error": say.OTHER_GROUP.format(), "next_try_at": None, "ended_at": now}
        if notices.count() == len(refused):
            AlertMessage.objects.filter(pk=message.pk).update(**ended)
            return
        aside = AlertMessage.objects.create(
            channel=message.channel, channel_name=message.channel_name, delivery_id=uuid4().hex, tries=message.tries,
            repeats=message.repeats, created_at=message.created_at, **ended,
        )  # fmt: skip
        for some in chunks(refused):
            notices.filter(pk__in=some).update(message=aside)
