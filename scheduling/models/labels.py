"""The words that fields and pages show for the stored values of an execution."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduling.core.health import Health
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.queues import IMMEDIATE, MAIN, STANDALONE, Priority, priority_of, queue_of
from scheduling.core.retention import Rule
from scheduling.core.skip_reasons import SkipReason
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text

STATES = {
    State.BLOCKED.value: _("blocked"),
    State.CLAIMED.value: _("claimed"),
    State.BLOCKED.value: _("blocked"),
    State.QUEUED.value: _("queued"),
    State.RUNNING.value: _("running"),
    State.RETRYING.value: _("retrying"),
    State.SUCCEEDED.value: _("succeeded"),
    State.FAILED.value: _("failed"),
    State.CANCELLED.value: _("cancelled"),
    State.DISCARDED.value: _("discarded"),
    State.SKIPPED.value: _("skipped"),
}

TYPES = {type_: _(type_) for type_ in TARGET_KINDS}
"""The word for each target type. The verbose names of the models use the same words and mark them for translation."""

TRIGGERS = {
    Trigger.CRON.value: _("cron"),
    Trigger.DATE.value: _("date"),
    Trigger.MANUAL.value: _("by hand"),
    Trigger.MESSAGE.value: _("message"),
    Trigger.CODE.value: _("code"),
    Trigger.BACKFILL.value: _("backfill"),
}

HEALTH = {
    Health.FAILING.value: _("failing"),
    Health.SKIPPED.value: _("skipped"),
    Health.LATE.value: _("late"),
    Health.NEVER_RAN.value: _("never ran"),
    Health.RUNNING.value: _("in progress"),
    Health.HEALTHY.value: _("healthy"),
    Health.PAUSED.value: _("paused"),
    Health.ENDED.value: _("ended"),
}

RETENTION_RULES = {
    Rule.SUCCESS: _("succeeded, age of successes"),
    Rule.ENDED: _("cancelled, discarded or skipped, age of executions"),
    Rule.FAILED: _("failed, age of failures"),
    Rule.COUNT: _("more than the number of executions to keep"),
    Rule.OUTPUT: _("only output and files, age of output"),
    Rule.ONE_TIME: _("spent one-time schedules"),
}
"""What each rule of retention removes. The summary of a pass and the page of retention show these words."""

SKIP_REASONS = {
    SkipReason.PAUSED.value: _("paused"),
    SkipReason.NO_PRODUCER.value: _("no producer was running"),
    SkipReason.TOO_LATE.value: _("older than the catch-up window"),
    SkipReason.OVERLAP.value: _("the run before was not over"),
    SkipReason.EXPIRED.value: _("had not started by its start deadline"),
    SkipReason.NOT_NEEDED.value: _("the handler had nothing to do"),
    SkipReason.NOT_CAUGHT_UP.value: _("missed, and not caught up"),
    SkipReason.OVER_CAP.value: _("more were missed than are caught up"),
    SkipReason.EXCLUDED.value: _("excluded by a calendar"),
    SkipReason.HELD.value: _("held by a calendar, and a later one ran"),
    SkipReason.RESTORED.value: _("ran before the database was restored"),
    SkipReason.CONFIRMED.value: _("left out when the database was confirmed"),
    SkipReason.PREDECESSOR.value: _("the schedule before it had not succeeded"),
    SkipReason.OTHER.value: _("another reason"),
}

QUEUES = {MAIN: _("main"), STANDALONE: _("standalone"), IMMEDIATE: _("immediate retry")}
"""The words for the queues that always exist. The others have the names that code and operators give them."""

PRIORITIES = {Priority.HIGH.value: _("high"), Priority.NORMAL.value: _("normal"), Priority.LOW.value: _("low")}


def queue_label(work: str) -> str:
    """The words for a work queue: its queue and, unless it is normal, its priority."""
    queue, priority = queue_of(work), priority_of(work)
    name = str(QUEUES.get(queue) or visible_text(queue, 60))
    if priority is Priority.NORMAL:
        return name
    return gettext("%(queue)s, priority %(priority)s") % {"queue": name, "priority": PRIORITIES[priority]}
