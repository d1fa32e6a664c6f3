"""An execution's page: why it stands as it does, its attempts, error, parameters and output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.alike import alike
from scheduling.admin.around import around
from scheduling.admin.attempts import MOST_ATTEMPTS, attempt_rows, ended_attempts
from scheduling.admin.deeds import deeds_of
from scheduling.admin.execution_timeline import MOST, timeline
from scheduling.admin.filters import TRIGGERS
from scheduling.admin.lineage import Lineage, lineage
from scheduling.admin.message_panel import message_panel
from scheduling.admin.output import SEARCHED, tail
from scheduling.admin.output_lines import CHOICES, Wanted
from scheduling.admin.params_diff import Change, changes
from scheduling.admin.params_model import masked
from scheduling.admin.parts import (
    EMPTY,
    json_block,
    shown,
    state_chip,
    took,
    when,
)
from scheduling.admin.scheduler_panels import handler_of, handler_of_execution
from scheduling.admin.why import why
from scheduling.artefacts import links_for
from scheduling.core.lifecycle import CANCELLABLE, State
from scheduling.models import Attempt, SchedulerExecution
from scheduling.registry import Handler
from scheduling.targets import target_model

EDIT = ("scheduling.republish_failedexecution", "scheduling.view_failedexecution")
ERROR_LIMIT = 5_000
TRACEBACK_LIMIT = 70_000
RERUNS = 5
"""Links to what it was run again as, the first ones."""


def facts(row: SchedulerExecution, found: Lineage, now: datetime) -> list[tuple[str, Any]]:
    """Label and value of what its timeline does not tell."""
    by = shown(row.requested_by)
    trigger = dict(TRIGGERS).get(row.trigger, row.trigger)
    values: list[tuple[str, Any]] = [
        (_("Scheduled for"), when(row.scheduled_at, now)),
        (_("Finished"), when(row.finished_at, now)),
        (_("From due to end"), took(row.scheduled_at, row.finished_at)),
        (_("Trigger"), _("%(trigger)s (%(who)s)") % {"trigger": trigger, "who": by} if by else trigger),
        (_("Queue"), row.get_queue_display()),
        (_("Execution key"), format_html("<code>{}</code>", shown(row.execution_key))),
    ]
    if found.source is not None:
        values.append((_("Rerun of"), _execution(found.source)))
    elif found.source_gone is not None:
        values.append((_("Rerun of"), _("%(id)s, which is deleted") % {"id": found.source_gone}))
    if found.reruns:
        links = format_html_join(", ", "{}", ((_execution(pk),) for pk in found.reruns[:RERUNS]))
        more = f" (+{len(found.reruns) - RERUNS})" if len(found.reruns) > RERUNS else ""
        values.append((_("Run again as"), format_html("{}{}", links, more)))
    return values


def _execution(pk: int) -> SafeString:
    address = reverse("admin:scheduling_schedulerexecution_change", args=[pk])
    return format_html('<a href="{}">{}</a>', address, _("execution %(id)s") % {"id": pk})


def error_of(row: SchedulerExecution, attempt: int | None) -> dict[str, Any] | None:
    """Class, message and traceback: of the attempt that was asked for, else of the last one that failed.

    A cancel is no error: who cancelled stands in the page's first sentence.
    """
    attempts = Attempt.objects.filter(execution=row.pk).exclude(error_class="").order_by("-number")
    attempts = attempts.exclude(outcome=Attempt.Outcome.CANCELLED)
    found = (attempts if attempt is None else attempts.filter(number=attempt)).first()
    if found is None:
        if attempt is not None or not row.error_class or row.state == State.CANCELLED.value:
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


def is_over(state: str) -> bool:
    """Whether nothing more happens by itself: a page need not ask again."""
    return state not in CANCELLABLE


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


def difference(row: SchedulerExecution, handler: Handler | None) -> list[Change] | None:
    """How its parameters differ from the schedule's present ones; None where the two cannot be compared."""
    now = row.scheduler.params if row.scheduler is not None else None
    if not isinstance(now, dict) or not isinstance(row.params, dict):
        return None
    # Its schedule may have another target by now.
    return changes(handler, row.params, now, other=handler_of(row.scheduler) if row.scheduler is not None else None)


def state_context(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """What the part of the page shows that changes while it goes on."""
    attempt = Wanted.of(request.GET).attempt
    ended = ended_attempts(row)
    steps, bar = timeline(row, ended[::-1], now)
    found = lineage(row)
    return {
        "row": row,
        "over": is_over(row.state),
        "chip": state_chip(row.state),
        "target": target_link(row, request),
        "scheduler_name": shown(row.scheduler, 120) if row.scheduler is not None else "",
        "may_view_scheduler": request.user.has_perm("scheduling.view_scheduler"),
        "why": [shown(sentence, 2_000) for sentence in why(row, now, around(row, now))],
        "progress": shown(row.progress),
        "facts": facts(row, found, now),
        "lineage": found,
        "steps": steps,
        "earlier_attempts": max(len(ended) - MOST, 0),
        "bar": bar,
        "attempts": attempt_rows(row, ended, now),
        "ended": ended,
        "deeds": deeds_of(row),
        "attempt": attempt,
        "error": error_of(row, attempt),
        "alike": alike(request, row, now),
        "files": links_for(row.pk),
        "may": may(request, row),
        "empty": EMPTY,
    }


def context(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """Everything that the page shows."""
    handler, wanted = handler_of_execution(row), Wanted.of(request.GET)
    state = state_context(request, row, now)
    attempts = state["ended"][::-1]
    return {
        **state,
        "numbers": range(1, row.attempt + 1)[-MOST_ATTEMPTS:],
        "params": json_block(masked(handler, row.params)),
        "difference": difference(row, handler),
        "may_change_scheduler": request.user.has_perm("scheduling.change_scheduler"),
        "message": message_panel(row, attempts, handler),
        "wanted": wanted,
        "term": shown(wanted.term),
        "levels": CHOICES,
        "output": tail(row.pk, wanted),
        "searched": SEARCHED // 1_000_000,
    }
