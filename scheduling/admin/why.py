"""Why an execution stands where it stands, in sentences: what an operator would otherwise read log files for."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.admin.times import relative, spelled, took
from scheduling.core.lifecycle import State
from scheduling.models import Process, SchedulerExecution
from scheduling.reconcile import SILENT_AFTER

NEEDS_CONSUMER = (State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value)


def consumers_alive(queue: str, now: datetime) -> int:
    """How many consumers of a queue have shown a heartbeat lately."""
    rows = Process.objects.filter(
        kind=Process.Kind.CONSUMER, stopped_at__isnull=True, heartbeat_at__gte=now - SILENT_AFTER
    ).values_list("info", flat=True)
    # Before its first heartbeat a consumer has not said which queue it serves.
    return sum(1 for info in rows if not isinstance(info, dict) or info.get("queue", queue) == queue)


def why(row: SchedulerExecution, now: datetime, consumers: int | None = None) -> list[str]:
    """Sentences from the row alone; `consumers` is how many could take it, None if nobody counted."""
    sentences = _by_state(row, now)
    if row.cancel_requested_by and row.state == State.RUNNING.value:
        who = {"who": row.cancel_requested_by}
        sentences.append(_("%(who)s asked to cancel it; its consumer is ending it.") % who)
    if consumers == 0 and row.state in NEEDS_CONSUMER:
        command = "run_worker --standalone" if row.queue == SchedulerExecution.Queue.STANDALONE else "run_worker"
        sentences.append(
            _("No consumer of the queue “%(queue)s” is alive: start one with manage.py %(command)s.")
            % {"queue": row.get_queue_display(), "command": command}
        )
    return sentences


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
            return [_("Attempt %(attempt)s did not succeed.") % facts, *_reason(row), _("It is due %(wake)s.") % facts]
        case State.SUCCEEDED.value:
            return [_("Attempt %(attempt)s succeeded in %(took)s.") % facts]
        case State.FAILED.value:
            return [
                _("Attempt %(attempt)s did not succeed.") % facts,
                *_reason(row),
                _("It waits in the failed inbox until somebody republishes or discards it."),
            ]
    return _reason(row) or [_("No reason was recorded.")]


def _reason(row: SchedulerExecution) -> list[str]:
    return [row.reason] if row.reason else []
