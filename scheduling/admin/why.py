"""Why an execution stands where it stands, in sentences: what an operator would otherwise read log files for."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.admin.around import NEEDS_CONSUMER, Around
from scheduling.admin.text import first_line
from scheduling.admin.times import relative, spelled, took
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.settlement import CLAIM_GRACE


def why(row: SchedulerExecution, now: datetime, about: Around | None = None) -> list[str]:
    """Sentences from the row, and from what stands around it, if somebody looked."""
    about = about or Around()
    sentences = _by_state(row, now)
    if row.cancel_requested_by and row.state == State.RUNNING.value:
        who = {"who": row.cancel_requested_by}
        sentences.append(_("%(who)s asked to cancel it; its consumer is ending it.") % who)
    sentences += _unconfirmed(row, now, about)
    if about.producers == 0:
        sentences.append(_("No producer is alive to move it on: start one with manage.py run_scheduler."))
    if about.consumers == 0 and row.state in NEEDS_CONSUMER:
        command = "run_worker --standalone" if row.queue == SchedulerExecution.Queue.STANDALONE else "run_worker"
        sentences.append(
            _("No consumer of the queue “%(queue)s” is alive: start one with manage.py %(command)s.")
            % {"queue": row.get_queue_display(), "command": command}
        )
    return sentences


def _unconfirmed(row: SchedulerExecution, now: datetime, about: Around) -> list[str]:
    """Why what was claimed a while ago is not published."""
    found = []
    if about.claimant is not None:
        who = {"who": about.claimant.container_id, "when": relative(about.claimant.heartbeat_at, now)}
        found.append(
            _("The producer %(who)s was stopped before that; another one publishes it.") % who
            if about.claimant.stopped_at is not None
            else _("The producer %(who)s died before that: its last sign was %(when)s; another one publishes it.") % who
        )
    if about.broker:
        found.append(
            _("The broker cannot be used: %(problem)s. It is published by itself once the broker is back.")
            % {"problem": about.broker.rstrip(".")}
        )
    return found


def _error(row: SchedulerExecution) -> str:
    """Class and first line of the message, as a sentence that can follow a colon."""
    said = first_line(row.error_message, 300)
    return f"{row.error_class}: {said}".rstrip(" .:") if said else row.error_class


def _not_succeeded(row: SchedulerExecution) -> list[str]:
    facts = {"attempt": row.attempt, "error": _error(row)}
    if not row.attempt:  # found in the failed queue: no attempt was ever made here
        return [f"{facts['error']}."] if facts["error"] else []
    if not facts["error"]:
        return [_("Attempt %(attempt)s did not succeed.") % facts]
    return [_("Attempt %(attempt)s did not succeed: %(error)s.") % facts]


def _by_state(row: SchedulerExecution, now: datetime) -> list[str]:
    facts = {
        "attempt": row.attempt,
        "claimed_by": row.container_id,
        "consumer": row.consumer,
        "queue": row.get_queue_display(),
        "since": spelled(row.published_at or row.executed_at),
        "wake": relative(row.wake_at, now) if row.wake_at else "",
        "took": took(row.started_at, row.finished_at),
    }
    match row.state:
        case State.CLAIMED.value if row.wake_at is not None and row.wake_at > now + CLAIM_GRACE:
            return [*_reason(row), _("It waits for its time, and is due %(wake)s.") % facts]
        case State.CLAIMED.value:
            return [*_reason(row), _("It is claimed by %(claimed_by)s and waits for the broker to confirm it.") % facts]
        case State.QUEUED.value if row.wake_at is not None and row.wake_at > now:
            return [*_reason(row), _("It waits for its time, and is due %(wake)s.") % facts]
        case State.QUEUED.value:
            return [*_reason(row), _("It waits in the queue “%(queue)s” for a free consumer since %(since)s.") % facts]
        case State.RUNNING.value:
            overdue = row.wake_at is not None and row.wake_at < now
            text = (
                _("Attempt %(attempt)s ran in %(consumer)s; its lease ended %(wake)s, and a producer will end it.")
                if overdue
                else _("Attempt %(attempt)s runs in %(consumer)s; its lease ends %(wake)s unless it is renewed.")
            )
            return [text % facts]
        case State.RETRYING.value:
            return [*_not_succeeded(row), *_reason(row), _("It is due %(wake)s.") % facts]
        case State.SUCCEEDED.value:
            return [_("Attempt %(attempt)s succeeded in %(took)s.") % facts]
        case State.FAILED.value:
            return [
                *_not_succeeded(row),
                *_reason(row),
                _("It waits in the failed inbox until somebody republishes or discards it."),
            ]
    return [*(_reason(row) or [_("No reason was recorded.")]), *_paused(row)]


def _paused(row: SchedulerExecution) -> list[str]:
    """Why its schedule is off, for a run that did not come about."""
    why = row.scheduler.paused_because if row.state == State.SKIPPED.value and row.scheduler is not None else ""
    return [_("Its schedule is switched off: %(reason)s") % {"reason": why}] if why else []


def _reason(row: SchedulerExecution) -> list[str]:
    return [row.reason] if row.reason else []
