"""Records an alert that was told from memory, after the database is back."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.alerts.notices import tell_ends
from scheduling.alerts.outage import Story, Telling
from scheduling.alerts.sending import text_of
from scheduling.core.alert_retry import SENDING_SECONDS
from scheduling.core.alerts import ADVICE_CHARS, SEEN_CHARS, SUBJECT_CHARS, open_key
from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel

Event = AlertNotice.Event
State = AlertMessage.State


def record(story: Story, now: datetime) -> None:
    """Record the alert, its start for each channel, and the messages that told it. Its end waits for the channels.

    A start that no channel can have got waits, too. One message then tells both.

    Raises:
        django.db.DatabaseError: the database cannot be reached, or refuses a row. Nothing is recorded then.
    """
    keys = [telling.channel.pk for telling in story.tellings]
    channels = set(Channel.objects.filter(pk__in=keys).values_list("pk", flat=True))
    with transaction.atomic():
        alert = _alert(story, now)
        messages = {}
        for telling in story.tellings:
            known = telling.channel.pk in channels
            message = _message(telling, now, known=known) if telling.has_begun else None
            if message is not None:
                messages[telling] = message.pk
            if known:
                _note(alert, telling, message)
        if story.ended_at is not None:
            tell_ends([alert.pk])
    for telling, pk in messages.items():
        telling.message = pk


def _alert(story: Story, now: datetime) -> Alert:
    """The row of the alert. While the situation lasts, another process may have begun it."""
    rule, situation = story.rule.row, story.situation
    key = open_key(rule.pk, situation.key) if story.ended_at is None else None
    told_at = story.tellings[0].created_at if story.tellings else None
    if key is not None and (alert := Alert.objects.filter(open_key=key).first()) is not None:
        Alert.objects.filter(pk=alert.pk).update(told_at=told_at)
        return alert
    known = AlertRule.objects.filter(pk=rule.pk).exists()
    return Alert.objects.create(
        rule_id=rule.pk if known else None, rule_name=rule.name, kind=rule.kind, severity=rule.severity,
        key=situation.key, open_key=key, subject=visible_text(situation.subject)[:SUBJECT_CHARS],
        seen=visible_text(situation.seen)[:SEEN_CHARS], advice=visible_text(situation.advice)[:ADVICE_CHARS],
        started_at=story.started_at, seen_at=story.ended_at or now, ended_at=story.ended_at, told_at=told_at,
    )  # fmt: skip


def _message(telling: Telling, now: datetime, *, known: bool) -> AlertMessage:
    sending = telling.state == State.SENDING
    next_try_at = now + timedelta(seconds=SENDING_SECONDS) if sending else telling.next_try_at
    return AlertMessage.objects.create(
        channel_id=telling.channel.pk if known else None, channel_name=visible_text(telling.channel.name)[:100],
        delivery_id=telling.delivery_id, state=telling.state, tries=telling.tries, repeats=telling.repeats,
        done=list(telling.done), next_try_at=next_try_at, error=text_of(telling.error), created_at=telling.created_at,
        ended_at=telling.ended_at,
    )  # fmt: skip


def _note(alert: Alert, telling: Telling, message: AlertMessage | None) -> None:
    start = {"alert": alert, "channel_id": telling.channel.pk, "event": Event.START}
    if message is not None:
        AlertNotice.objects.filter(**start, message=None).update(message=message)
    AlertNotice.objects.bulk_create([AlertNotice(**start, message=message)], ignore_conflicts=True)
