"""Says for what an execution waits that has not ended, in a sentence or two. The page of the execution says more."""

from __future__ import annotations

from datetime import datetime, tzinfo

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader, in_language
from scheduling.core.lifecycle import CLAIM_GRACE, WAITING, State
from scheduling.core.targets import handler_name
from scheduling.core.text import visible_text
from scheduling.execution.work_pauses import pause_for
from scheduling.models import SchedulerExecution
from scheduling.operations.times import format_instant, relative_time

REASON_CHARS = 1_000


def waiting_words(row: SchedulerExecution, now: datetime, info: tzinfo) -> str:
    """For what the execution waits. All times are in the zone `info`."""
    text = _for_what(row, now, info)
    if row.start_by is not None and not row.attempt:
        late = _("It must start by %(time)s; otherwise it is skipped.")
        text = f"{text} {late % {'time': format_instant(row.start_by, info)}}"
    return text


def _for_what(row: SchedulerExecution, now: datetime, info: tzinfo) -> str:
    reason = for_reader(row.reason, REASON_CHARS)
    if row.state in WAITING:
        pause = pause_for(row.type, handler_name(row.type, row.target_name), row.queue, now)
        if pause is not None:
            return _("It has not started. %(pause)s It starts when the pause has ended.") % {
                "pause": in_language(pause.sentence())
            }
    if row.state == State.RETRYING.value:
        facts = {"attempt": row.attempt, "error": visible_text(row.error_class, 80) or _("unknown error")}
        when = relative_time(row.wake_at, now) if row.wake_at is not None else _("soon")
        failed = _("Attempt %(attempt)s failed: %(error)s. The next attempt is due %(when)s.")
        return failed % (facts | {"when": when})
    if reason:
        return _("It has not started. %(reason)s") % {"reason": reason}
    # The wake of a row that waits for its broker is at most so much later than now.
    soon = now + CLAIM_GRACE if row.state == State.CLAIMED.value else now
    if row.wake_at is not None and row.wake_at > soon:
        return _("It has not started: it is planned for %(time)s.") % {"time": format_instant(row.wake_at, info)}
    if row.state == State.CLAIMED.value:
        return _("It has not started: it waits for the broker to confirm it.")
    if row.state == State.QUEUED.value:
        queue = {"queue": row.queue_label}
        return _("It has not started: it waits in the queue “%(queue)s” for a free consumer.") % queue
    return _("It is on record and has not ended yet.")
