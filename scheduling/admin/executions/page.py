"""An execution's page: the reason for its state, its attempts, error, parameters and output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.alerts.standing import alerts_context
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.executions.artefacts import all_links
from scheduling.admin.executions.attempt_facts import last_attempt_facts
from scheduling.admin.executions.attempts import MOST_ATTEMPTS, attempt_rows, ended_attempts
from scheduling.admin.executions.batch import batch_context
from scheduling.admin.executions.deaths import death_rows
from scheduling.admin.executions.duration import duration_facts
from scheduling.admin.executions.finished_steps import finished_steps
from scheduling.admin.executions.history import audit_entries
from scheduling.admin.executions.lineage import Lineage, lineage
from scheduling.admin.executions.lookup import trigger_words
from scheduling.admin.executions.message import embedded, message_panel
from scheduling.admin.executions.monitors import monitors
from scheduling.admin.executions.output import tail
from scheduling.admin.executions.recipients import recipients
from scheduling.admin.executions.similar import similar
from scheduling.admin.executions.surroundings import surroundings_of
from scheduling.admin.executions.timeline import SHOWN_ATTEMPTS, timeline
from scheduling.admin.executions.times import times_of_schedule
from scheduling.admin.executions.tools import tools
from scheduling.admin.executions.why import old_code, why
from scheduling.admin.params.json_field import json_block, params_block
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url, execution_link, link
from scheduling.admin.ui.targets import linked_target, loaded_target, target_tag
from scheduling.admin.ui.times import EMPTY, duration_between, time_with_relative
from scheduling.core.headers import usable
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import OPEN_STATES, State, Trigger
from scheduling.core.text import visible_text
from scheduling.execution.results import result_of
from scheduling.handlers import Handler
from scheduling.handlers.permission import refusal
from scheduling.handlers.secret_headers import masked_headers
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of, handler_of_execution, target_model
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.visibility import visibility_of
from scheduling.operations.output import OutputLimits
from scheduling.operations.output_filter import CHOICES, Wanted
from scheduling.operations.params_diff import Change, changes

EDIT = ("scheduling.republish_failedexecution", "scheduling.view_failedexecution")
ERROR_LIMIT = 5_000
TRACEBACK_LIMIT = 70_000
LAST_LINES = 6
"""So many lines of a long traceback are shown at once: the last two calls and the error."""
SHORT_TRACEBACK = 12
RERUNS = 5
"""The page links to at most this many reruns. If an execution has more reruns, the page links to the oldest ones."""


def facts(row: SchedulerExecution, found: Lineage, now: datetime) -> list[tuple[str, Any]]:
    """The facts below the output that the timeline does not show, as pairs of label and value."""
    values: list[tuple[str, Any]] = [
        (_("Scheduled for"), time_with_relative(row.scheduled_at, now)),
        *([(_("Planned start"), time_with_relative(row.assigned_at, now))] if row.assigned_at is not None else []),
        (_("Finished"), time_with_relative(row.finished_at, now)),
        (_("Total time, from the due time"), duration_between(row.should_start_at, row.finished_at)),
        (_("Trigger"), trigger_words(row)),
        (_("Queue"), row.queue_label),
        (_("Execution key"), format_html("<code>{}</code>", visible_text(row.execution_key))),
    ]
    if row.snoozes:
        values.append((_("Snoozed"), _times(row.snoozes)))
    if found.source is not None:
        gone = _("%(id)s, which is deleted") % {"id": found.source}
        values.append((_("Rerun of"), execution_link(found.source) if found.source_exists else gone))
    if found.reruns:
        links = format_html_join(", ", "{}", ((execution_link(pk),) for pk in found.reruns[:RERUNS]))
        more = f" (+{len(found.reruns) - RERUNS})" if len(found.reruns) > RERUNS else ""
        values.append((_("Run again as"), format_html("{}{}", links, more)))
    return values


def revision_facts(request: HttpRequest, row: SchedulerExecution) -> list[tuple[str, Any]]:
    """The revision of the schedule that planned it, as a link if the user may see the schedule."""
    if not isinstance(row.revision, int):
        return []
    said = _("revision %(number)s") % {"number": row.revision}
    if row.scheduler is not None and request.user.has_perm("scheduling.view_scheduler"):
        said = link(admin_url("scheduling_scheduler_history", row.scheduler.pk), said)
    return [(_("Planned by"), said)]


def _times(count: object) -> str:
    """How often the handler was not ready. Plain SQL can write any value."""
    if not isinstance(count, int):
        return visible_text(str(count), 100)
    text = ngettext("%(count)d time; its handler was not ready", "%(count)d times; its handler was not ready", count)
    return text % {"count": count}


def error_of(row: SchedulerExecution, attempt: int | None) -> dict[str, Any] | None:
    """The error of the chosen attempt, with class, message and traceback; None if there is no error.

    If no attempt is chosen, the result is the error of the last attempt that has an error. A cancel is not shown
    as an error, because the page's first sentence says who cancelled. The last lines of the traceback are shown at
    once. `lines` is the number of all lines; 0 if these are all.
    """
    attempts = Attempt.objects.filter(execution=row.pk).exclude(error_class="").order_by("-number")
    attempts = attempts.exclude(outcome=Attempt.Outcome.CANCELLED)
    found = (attempts if attempt is None else attempts.filter(number=attempt)).first()
    if found is None:
        if attempt is not None or not row.error_class or row.state == State.CANCELLED.value:
            return None
        # An execution whose message cannot be read has an error, but no attempt.
        found = Attempt(number=0, error_class=row.error_class, error_message=row.error_message)
    traceback = visible_text(found.traceback, TRACEBACK_LIMIT).rstrip()
    lines = traceback.splitlines()
    short = len(lines) <= SHORT_TRACEBACK
    return {
        "number": found.number,
        "name": visible_text(found.error_class),
        "message": for_reader(found.error_message, ERROR_LIMIT),
        "traceback": traceback,
        "last": traceback if short else "\n".join(_last_lines(lines)),
        "lines": 0 if short else len(lines),
        "fingerprint": row.fingerprint,
    }


def _last_lines(lines: list[str]) -> list[str]:
    """The last lines of a traceback, from the beginning of a call on."""
    calls = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    first = next((number for number in calls if number >= len(lines) - LAST_LINES), len(lines) - LAST_LINES)
    return lines[first:]


def target_link(row: SchedulerExecution, request: HttpRequest) -> str:
    """The target's title, as a link if the target has a page that this user may see."""
    name = target_tag(row.type, row.target_name or row.type or _("unreadable message"), loaded_target(row))
    try:
        model = target_model(row.type)
    except LookupError:
        return name
    return linked_target(model, row.target_id, name, request.user)


def may(request: HttpRequest, row: SchedulerExecution) -> dict[str, bool]:
    """Which buttons are shown. A button is shown if both the state and the user's permissions allow its action."""
    user, failed = request.user, row.state == State.FAILED.value
    if refusal(user, row):
        return dict.fromkeys(("cancel", "rerun", "republish", "edit", "discard"), False)
    return {
        "cancel": row.state in OPEN_STATES and user.has_perm("scheduling.cancel_execution"),
        "rerun": row.scheduler is not None and user.has_perm("scheduling.rerun_execution"),
        "republish": failed and user.has_perm("scheduling.republish_failedexecution"),
        "edit": failed and bool(row.type) and user.has_perms(EDIT),
        "discard": failed and user.has_perm("scheduling.discard_failedexecution"),
    }


def difference(row: SchedulerExecution, handler: Handler | None) -> list[Change] | None:
    """How the execution's parameters differ from the schedule's present parameters.

    The result is None if the schedule is deleted, or if the parameters of the execution or the schedule are not a JSON
    object.
    """
    scheduler = row.scheduler
    if scheduler is None or not isinstance(scheduler.params, dict) or not isinstance(row.params, dict):
        return None
    # By now, the schedule may have another target, and this target may have another handler.
    return changes(handler, row.params, scheduler.params, other=handler_of(scheduler))


def chosen_for_run(row: SchedulerExecution) -> bool:
    """Whether an operator chose the parameters in which the execution differs from its schedule.

    If the schedule was edited after the run had been asked for, it is not known which of the two made the difference.
    """
    if row.trigger != Trigger.MANUAL.value or row.scheduler is None:
        return False
    return row.scheduler.updated_at <= row.executed_at


def _result(row: SchedulerExecution) -> str:
    """What the handler has returned, as a block of JSON; empty if nothing is stored."""
    found = result_of(row.pk, row.attempt) if row.state == State.SUCCEEDED.value else None
    return "" if found is None else json_block(found)


def _headers(row: SchedulerExecution) -> str:
    """The headers of the run, as a block of JSON; empty if there are none."""
    found = masked_headers(usable(row.headers))
    return json_block(found) if found else ""


@times_of_schedule
def state_context(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """The template context for the two parts of the page that change while the execution goes on.

    `state.html` stands above the output, and `rest.html` below it.
    """
    attempt = Wanted.of(request.GET).attempt
    ended = ended_attempts(row)
    steps, bar = timeline(row, ended[::-1], now)
    found, about = lineage(row, visibility_of(request.user)), surroundings_of(row, now)
    return {
        "row": row,
        "over": row.state not in OPEN_STATES,
        "chip": state_badge(row.state),
        "target": target_link(row, request),
        "scheduler_name": visible_text(row.scheduler, 120) if row.scheduler is not None else "",
        "may_view_scheduler": request.user.has_perm("scheduling.view_scheduler"),
        "why": [visible_text(sentence, 2_000) for sentence in why(row, now, about)],
        "old_code": [visible_text(sentence, 500) for sentence in old_code(row, now, about)],
        "progress": visible_text(row.progress),
        "facts": [
            *facts(row, found, now),
            *revision_facts(request, row),
            *duration_facts(request, row, ended, now),
            *last_attempt_facts(row, ended),
        ],
        "lineage": found,
        "steps": steps,
        "earlier_attempts": max(len(ended) - SHOWN_ATTEMPTS, 0),
        "bar": bar,
        # The sentence and the timeline tell of a single attempt already.
        "attempts": attempt_rows(row, ended, now) if row.attempt > 1 else [],
        "ended": ended,
        "deeds": audit_entries(row),
        "attempt": attempt,
        "recipients": recipients(row),
        "monitors": monitors(row),
        "batch": batch_context(row, ended, attempt, visibility_of(request.user)),
        "finished_steps": finished_steps(row),
        "error": error_of(row, attempt),
        "result": _result(row),
        "alike": similar(request, row, now),
        "files": all_links(row.pk),
        "tools": tools(row, may(request, row)),
        "refusal": refusal(request.user, row),
        "empty": EMPTY,
    }


@times_of_schedule
def context(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """The template context for the whole page."""
    handler, wanted = handler_of_execution(row), Wanted.of(request.GET)
    state = state_context(request, row, now)
    attempts = state["ended"][::-1]
    if state["error"] and row.state == State.SUCCEEDED.value and state["attempt"] is None:
        # Only the page as it is opened: an operator may be reading the error while the run succeeds.
        state["error"]["folded"] = True
    return {
        **state,
        "numbers": range(1, row.attempt + 1)[-MOST_ATTEMPTS:],
        "params": params_block(
            masked(handler, row.params), _("This run has no parameters of its own. Those of its target are used.")
        ),
        "headers": _headers(row),
        "difference": difference(row, handler),
        "chosen_for_run": chosen_for_run(row),
        "may_change_scheduler": request.user.has_perm("scheduling.change_scheduler"),
        "deaths": death_rows(row.pk),
        "message": None if embedded() else message_panel(row, attempts, handler),
        "wanted": wanted,
        "term": visible_text(wanted.term),
        "levels": CHOICES,
        "output": tail(row.pk, wanted),
        "searched": OutputLimits.page_search_characters // 1_000_000,
        **alerts_context(Viewer.of(request), execution=row.pk),
    }
