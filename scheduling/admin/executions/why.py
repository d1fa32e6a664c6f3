"""Sentences that explain the state of an execution, so that operators need not read log files."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.admin.executions.surroundings import Surroundings
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import duration_between, format_instant, relative_time
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import CANCELLED_AT_ONCE, CLAIM_GRACE, WAITING, State
from scheduling.core.queues import MAIN, STANDALONE, queue_of
from scheduling.core.skip_reasons import LEFT_OUT
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution
from scheduling.monitoring.findings.old_code import old_code_words
from scheduling.operations.moved_start import moved_words
from scheduling.operations.schedule_words import zone_of


def why(row: SchedulerExecution, now: datetime, about: Surroundings | None = None) -> list[str]:
    """Sentences that explain the row's state. `about` adds sentences about the broker and the processes."""
    about = about or Surroundings()
    sentences = (
        _behind(row) or _paused_work(row, about) or _put_off(row, now) or _blocked(row, now) or _by_state(row, now)
    )
    if row.cancel_requested_by and row.state == State.RUNNING.value:
        who = {"who": in_language(row.cancel_requested_by)}
        sentences.append(_("%(who)s is cancelling it.") % who)
    sentences += [*_moved(row), *_deadline(row, now)]
    sentences += _unconfirmed(row, now, about)
    if about.producers == 0:
        sentences.append(_("No producer is alive to continue it: start one with manage.py run_scheduler."))
    if about.consumers == 0 and row.state in WAITING:
        queue, command = queue_of(row.queue), "run_worker"
        if queue == STANDALONE:
            command = "run_worker --standalone"
        elif queue != MAIN:
            command = f"run_worker --queue {visible_text(queue, 60)}"
        text = _("No consumer of the queue “%(queue)s” is alive: start one with manage.py %(command)s.")
        sentences.append(text % {"queue": row.queue_label, "command": command})
    return sentences


def old_code(row: SchedulerExecution, now: datetime, about: Surroundings) -> list[str]:
    """Whether the last attempt ran old code, and whether the next one would. It is a warning of its own."""
    process = about.outdated
    if process is None:
        return []
    words = {"consumer": process.container_id, "code": old_code_words(process, now)}
    if row.started_at is not None and process.code_changed_at is not None and row.started_at >= process.code_changed_at:
        ran = _("Attempt %(attempt)s ran old code, so the traceback may show lines that did not run.")
        found = [ran % {"attempt": row.attempt}]
    else:
        found = []
    if process.is_alive(now):
        found.append(_("The consumer %(consumer)s %(code)s.") % words)
    return found


def _unconfirmed(row: SchedulerExecution, now: datetime, about: Surroundings) -> list[str]:
    """Why a row that was claimed a while ago is not published yet."""
    found = []
    if about.claimant is not None:
        who = {"who": about.claimant.container_id, "when": relative_time(about.claimant.heartbeat_at, now)}
        text = _("Its producer %(who)s lost contact %(when)s, before the broker confirmed; another will publish it.")
        if about.claimant.stopped_at is not None:
            text = _("Its producer %(who)s was stopped before the broker confirmed; another will publish it.")
        found.append(text % who)
    if about.broker:
        text = _("The broker cannot be used: %(problem)s. The run is published when the broker is back.")
        found.append(text % {"problem": about.broker.rstrip(".")})
    return found


def _error(row: SchedulerExecution) -> str:
    """The error's class and the first line of its message, for use inside a sentence. A final full stop is removed."""
    said = first_line(in_language(row.error_message), 300)
    return f"{row.error_class}: {said}".rstrip(" .:") if said else row.error_class


def _not_succeeded(row: SchedulerExecution) -> list[str]:
    facts = {"attempt": row.attempt, "error": _error(row)}
    if not row.attempt:  # sync made this row for a message of the failed queue, so the row has no attempt
        return [f"{facts['error']}."] if facts["error"] else []
    if not facts["error"]:
        if row.state == State.RETRYING.value:  # a service whose handler has returned
            return []
        return [_("Attempt %(attempt)s failed.") % facts]
    return [_("Attempt %(attempt)s failed: %(error)s.") % facts]


def _by_state(row: SchedulerExecution, now: datetime) -> list[str]:
    facts = {
        "attempt": row.attempt,
        "claimed_by": row.container_id,
        "consumer": row.consumer,
        "queue": row.queue_label,
        "since": format_instant(row.published_at or row.executed_at),
        "wake": relative_time(row.wake_at, now) if row.wake_at else "",
        "took": duration_between(row.started_at, row.finished_at),
        "so_far": duration_between(row.started_at, now),
    }
    # If a claimed row waits for the broker, its wake_at is at most now + CLAIM_GRACE. A later wake_at means that the
    # row waits for its planned time.
    soon = now + CLAIM_GRACE if row.state == State.CLAIMED.value else now
    match row.state:
        case State.CLAIMED.value | State.QUEUED.value if row.wake_at is not None and row.wake_at > soon:
            return [*_reason(row), _("Waiting for its time: due %(wake)s.") % facts]
        case State.CLAIMED.value:
            return [*_reason(row), _("Claimed by %(claimed_by)s. It waits for the broker to confirm it.") % facts]
        case State.QUEUED.value:
            return [*_reason(row), _("Waiting in the queue “%(queue)s” for a free consumer since %(since)s.") % facts]
        case State.RUNNING.value:
            runs = _("Running for %(so_far)s on %(consumer)s, attempt %(attempt)s.")
            ran = _("The consumer %(consumer)s lost contact in attempt %(attempt)s. A producer will end the attempt.")
            return [(ran if row.wake_at is not None and row.wake_at < now else runs) % facts]
        case State.RETRYING.value:
            return [*_not_succeeded(row), *_reason(row), _next_attempt(row, now)]
        case State.SUCCEEDED.value:
            return [_("Attempt %(attempt)s succeeded in %(took)s.") % facts]
        case State.FAILED.value:
            waits = _("It stays in the failed inbox until it is republished or discarded.")
            return [*_not_succeeded(row), *_reason(row), waits]
    never = [_("It never started.")] if row.state == State.CANCELLED.value and not row.attempt else []
    return [*(_reason(row) or [_("No reason was recorded.")]), *_stands_for(row), *never, *_paused(row)]


def _next_attempt(row: SchedulerExecution, now: datetime) -> str:
    if row.wake_at is not None and row.wake_at > now:
        return _("The next attempt is due %(wake)s.") % {"wake": relative_time(row.wake_at, now)}
    return _("The next attempt is due now.")


def _behind(row: SchedulerExecution) -> list[str]:
    """Which run of its schedule the execution waits for; empty if it waits for none."""
    if row.state != State.BLOCKED.value or row.waits_for is not None:
        return []
    return _reason(row) or [_("It waits until another run of its schedule is over.")]


def _moved(row: SchedulerExecution) -> list[str]:
    """Why it was to start later than it was due; empty if it was not. The times are in the zone of the schedule."""
    said = moved_words(row, zone_of(row.scheduler)) if row.assigned_at is not None else ""
    return [said] if said else []


def _deadline(row: SchedulerExecution, now: datetime) -> list[str]:
    """Until when the run may still start; empty if it has no start deadline."""
    if row.start_by is None or row.attempt or row.state not in CANCELLED_AT_ONCE:
        return []
    return [_("It must start %(when)s; otherwise it is skipped.") % {"when": relative_time(row.start_by, now)}]


def _put_off(row: SchedulerExecution, now: datetime) -> list[str]:
    """Why a run that was put off or has snoozed waits, and when it is offered to the consumers again.

    Empty for other rows.
    """
    waits = row.state in (State.CLAIMED.value, State.QUEUED.value) and (row.deferred_at is not None or row.snoozes)
    if not waits or row.wake_at is None:
        return []
    text = _("It is offered to the consumers again %(wake)s.")
    if row.deferred_at is not None:
        # What it waits for may be there before: a place, a probe, a consumer with the code.
        text = _("It is offered to the consumers again %(wake)s at the latest.")
    if row.wake_at <= now:
        text = _("It was offered to the consumers again %(wake)s.")
    return [*_reason(row), text % {"wake": relative_time(row.wake_at, now)}]


def _blocked(row: SchedulerExecution, now: datetime) -> list[str]:
    """For what the run waits, and when it is looked at again; empty if it may start."""
    if row.state != State.BLOCKED.value or row.wake_at is None:
        return []
    if row.wake_at <= now:
        return [*_reason(row), _("A producer looks at it again as soon as it can.")]
    text = _("A producer looks at it again %(wake)s.")
    return [*_reason(row), text % {"wake": relative_time(row.wake_at, now)}]


def _paused_work(row: SchedulerExecution, about: Surroundings) -> list[str]:
    """That the run waits for the end of a pause; empty if it does not."""
    if about.pause is None:
        return []
    before = _not_succeeded(row) if row.state == State.RETRYING.value else []
    return [*before, in_language(about.pause.sentence()), _("It waits, and starts when the pause has ended.")]


def _stands_for(row: SchedulerExecution) -> list[str]:
    """That a row of several occurrences is the only one of them."""
    if row.state != State.SKIPPED.value or row.missed < 2:
        return []
    if row.reason.startswith(LEFT_OUT):
        facts = {"count": row.missed, "until": format_instant(row.executed_at)}
        return [_("This execution stands for %(count)d occurrences, the last one at %(until)s.") % facts]
    return [_("This execution stands for all %(count)d of them. “Run again” starts one run.") % {"count": row.missed}]


def _paused(row: SchedulerExecution) -> list[str]:
    """Why the schedule of a skipped occurrence is paused."""
    why = row.scheduler.paused_because if row.state == State.SKIPPED.value and row.scheduler is not None else ""
    return [_("The schedule is paused: %(reason)s") % {"reason": in_language(why)}] if why else []


def _reason(row: SchedulerExecution) -> list[str]:
    return [in_language(row.reason)] if row.reason else []
