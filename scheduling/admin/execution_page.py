"""An execution's page: why it stands as it does, its attempts, error, parameters and output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.attempts import attempt_rows
from scheduling.admin.filters import TRIGGERS
from scheduling.admin.output import tail
from scheduling.admin.params_model import masked
from scheduling.admin.parts import (
    EMPTY,
    json_block,
    shown,
    stamp,
    state_chip,
    took,
    when,
)
from scheduling.admin.scheduler_panels import handler_of_execution
from scheduling.admin.why import NEEDS_CONSUMER, consumers_alive, why
from scheduling.artefacts import links_for
from scheduling.core.lifecycle import CANCELLABLE, State
from scheduling.models import Attempt, SchedulerExecution
from scheduling.targets import target_model

EDIT = ("scheduling.republish_failedexecution", "scheduling.view_failedexecution")
ERROR_LIMIT = 5_000
TRACEBACK_LIMIT = 70_000


def chosen_attempt(request: HttpRequest) -> int | None:
    """The attempt that the address asks for; None is all of them."""
    value = request.GET.get("attempt", "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else None


def facts(row: SchedulerExecution, now: datetime) -> list[tuple[str, Any]]:
    """Label and value of everything that was recorded about its way."""
    by = shown(row.requested_by)
    claimed_by = _("by %(who)s") % {"who": shown(row.container_id)}
    trigger = dict(TRIGGERS).get(row.trigger, row.trigger)
    return [
        (_("Scheduled for"), when(row.scheduled_at, now)),
        (_("Trigger"), _("%(trigger)s (%(who)s)") % {"trigger": trigger, "who": by} if by else trigger),
        (
            _("Claimed"),
            format_html("{} {}", stamp(row.executed_at), claimed_by),
        ),
        (_("Published"), stamp(row.published_at)),
        (_("Queue"), row.get_queue_display()),
        (_("Last start"), format_html("{}{}", stamp(row.started_at), _late(row))),
        (_("Finished"), when(row.finished_at, now)),
        (_("From due to end"), took(row.scheduled_at, row.finished_at)),
        (_("Execution key"), format_html("<code>{}</code>", shown(row.execution_key))),
    ]


def _late(row: SchedulerExecution) -> str:
    if row.started_at is None or row.attempt != 1:
        return ""
    return f" ({_('%(time)s after it was due') % {'time': took(row.scheduled_at, row.started_at)}})"


def error_of(row: SchedulerExecution, attempt: int | None) -> dict[str, Any] | None:
    """Class, message and traceback: of the attempt that was asked for, else of the last one that failed."""
    attempts = Attempt.objects.filter(execution=row.pk).exclude(error_class="").order_by("-number")
    found = (attempts if attempt is None else attempts.filter(number=attempt)).first()
    if found is None:
        if attempt is not None or not row.error_class:
            return None
        # A message that could not even be read has an error, and never had an attempt.
        found = Attempt(number=0, error_class=row.error_class, error_message=row.error_message)
    return {
        "number": found.number,
        "name": shown(found.error_class),
        "message": shown(found.error_message, ERROR_LIMIT),
        "traceback": shown(found.traceback, TRACEBACK_LIMIT),
        "fingerprint": row.fingerprint,
    }


def target_link(row: SchedulerExecution, request: HttpRequest) -> SafeString | str:
    """The target's name, leading to its page where there is one that this user may see."""
    name = shown(row.target_name or row.type or _("unreadable message"))
    try:
        opts = target_model(row.type)._meta
    except LookupError:
        return name
    if row.target_id is None or not request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}"):
        return name
    try:
        address = reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[row.target_id])
    except NoReverseMatch:
        return name
    return format_html('<a href="{}">{}</a>', address, name)


def may(request: HttpRequest, row: SchedulerExecution) -> dict[str, bool]:
    """Which buttons are there: what the state allows, and this user may."""
    user, failed = request.user, row.state == State.FAILED.value
    return {
        "cancel": row.state in CANCELLABLE and user.has_perm("scheduling.cancel_execution"),
        "rerun": row.scheduler_id is not None and user.has_perm("scheduling.rerun_execution"),
        "republish": failed and user.has_perm("scheduling.republish_failedexecution"),
        "edit": failed and bool(row.type) and user.has_perms(EDIT),
        "discard": failed and user.has_perm("scheduling.discard_failedexecution"),
    }


def context(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """Everything the template shows."""
    attempt = chosen_attempt(request)
    consumers = consumers_alive(row.queue, now) if row.state in NEEDS_CONSUMER else None
    handler = handler_of_execution(row)
    rows = attempt_rows(row, now)
    return {
        "row": row,
        "chip": state_chip(row.state),
        "target": target_link(row, request),
        "scheduler_name": shown(row.scheduler, 120) if row.scheduler is not None else "",
        "may_view_scheduler": request.user.has_perm("scheduling.view_scheduler"),
        "why": [shown(sentence, 2_000) for sentence in why(row, now, consumers)],
        "progress": shown(row.progress),
        "facts": facts(row, now),
        "attempts": rows,
        "attempt": attempt,
        "numbers": sorted({each.number for each in rows}),
        "error": error_of(row, attempt),
        "params": json_block(masked(handler, row.params)),
        "output": tail(row.pk, attempt),
        "files": links_for(row.pk),
        "may": may(request, row),
        "empty": EMPTY,
    }
