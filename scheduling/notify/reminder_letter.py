"""Writes the letter of a reminder, and finds its recipients."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils import timezone as clock
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.zones import zone
from scheduling.models import Channel, Reminder, Scheduler
from scheduling.notify.channels import problem_of
from scheduling.notify.delivery import Letter
from scheduling.notify.links import absolute_url
from scheduling.notify.message_template import MessageTemplateError, rendered
from scheduling.notify.outbox import Recipient

TEMPLATES = {"subject": _("subject"), "body": _("text"), "html": _("HTML text")}
"""The columns of a reminder that are templates, with their labels."""


def message_data(
    reminder: Reminder, scheduler: Scheduler | None, at: datetime, params: Mapping[str, Any], trigger: str = "manual"
) -> dict[str, Any]:
    """The names that a template can use.

    Args:
        at: the due instant. Templates show it in the zone of the schedule.
        params: the parameters of the run.
    """
    schedule: dict[str, Any] = {"id": None, "description": "", "cron": "", "timezone": get_conf().timezone, "url": ""}
    if scheduler is not None:
        schedule = {
            "id": scheduler.pk,
            "description": str(scheduler),
            "cron": scheduler.schedule,
            "timezone": scheduler.zone_name,
            "url": absolute_url("admin:scheduling_scheduler_change", scheduler.pk),
        }
    return {
        "occurrence": {"at": at.astimezone(_zone(schedule["timezone"])), "trigger": trigger},
        "schedule": schedule,
        "reminder": {"name": reminder.name},
        "params": dict(params),
    }


def letter_of(reminder: Reminder, data: Mapping[str, Any], recipient: Recipient) -> Letter:
    """Render the reminder's templates for one recipient.

    Raises:
        MessageTemplateError: a template cannot be used. The error names the field.
    """
    facts = {**data, "recipient": {"name": recipient.name, "address": recipient.address}}
    texts: dict[str, str] = {}
    for field, label in TEMPLATES.items():
        try:
            texts[field] = rendered(getattr(reminder, field), facts, html=field == "html")
        except MessageTemplateError as error:
            raise MessageTemplateError(f"{label}: {error}") from None
    subject = " ".join(texts["subject"].split())[:200]
    return Letter(subject, texts["body"], texts["html"].strip())


def webhook_facts(
    reminder: Reminder, data: Mapping[str, Any], params: Mapping[str, Any], execution_key: str
) -> dict[str, Any]:
    """What a webhook gets beside the subject and the text.

    Args:
        data: what `message_data` has returned.
        params: the parameters of the run, with masked secrets.
    """
    return {
        "event": "reminder",
        "reminder": {"id": reminder.pk, "name": reminder.name},
        "schedule": data["schedule"],
        "execution_key": execution_key,
        "due_at": data["occurrence"]["at"].isoformat(),
        "trigger": data["occurrence"]["trigger"],
        "params": dict(params),
    }


def surroundings(data: Mapping[str, Any], language: str) -> AbstractContextManager[Any]:
    """The time zone and the language in which the reminder is written, as a context manager."""
    stack = ExitStack()
    stack.enter_context(translation.override(language or settings.LANGUAGE_CODE))
    stack.enter_context(clock.override(_zone(data["schedule"]["timezone"])))
    return stack


def recipients_of(reminder: Reminder) -> list[Recipient]:
    """The recipients: chosen users, users of chosen groups, further addresses, channels. No address comes twice.

    Of a channel of e-mail addresses, each address is a recipient.
    """
    users = get_user_model()._default_manager.filter(is_active=True)
    chosen = users.filter(Q(pk__in=reminder.users.all()) | Q(groups__in=reminder.groups.all())).distinct()
    found: dict[str, Recipient] = {}
    for user in chosen.order_by("pk"):
        name, address = user.get_username(), str(getattr(user, user.get_email_field_name(), "") or "").strip()
        if address:
            found.setdefault(address.casefold(), Recipient(address, user.get_full_name() or name))
        else:
            found[f"user {name}"] = Recipient(name, name, f"The user {name} has no e-mail address.")
    for line in reminder.recipients.splitlines():
        if address := line.strip():
            found.setdefault(address.casefold(), Recipient(address))
    in_channels = [one for channel in reminder.channels.order_by("pk") for one in _recipients_in(channel)]
    for recipient in in_channels:
        if recipient.channel is None:
            found.setdefault(recipient.address.casefold(), recipient)
    return [*found.values(), *(recipient for recipient in in_channels if recipient.channel is not None)]


def _recipients_in(channel: Channel) -> list[Recipient]:
    """The channel, or each address of a channel of e-mail addresses."""
    problem = problem_of(channel)
    if channel.kind == Channel.Kind.EMAIL and not problem:
        return [Recipient(address) for address in channel.addresses]
    return [Recipient("", channel.name, problem, channel)]


def _zone(name: str) -> ZoneInfo:
    try:
        return zone(name)
    except ValueError:
        return ZoneInfo("UTC")  # plain SQL may have written a zone that does not exist
