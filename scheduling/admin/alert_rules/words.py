"""Alert rules in words: what a kind tells of, and the threshold of a rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.ui.times import EMPTY, format_duration
from scheduling.core.alert_rules import KINDS, RuleKind, Threshold
from scheduling.core.text import visible_text

ABOUT: Mapping[RuleKind, Any] = {
    RuleKind.INBOX: gettext_lazy("More failed runs wait in the inbox than the threshold."),
    RuleKind.RETRIED: gettext_lazy("An open run has been retried more often than the threshold."),
    RuleKind.RETRY_SHARE: gettext_lazy("Of at least 20 runs in 24 hours, a greater share was retried."),
    RuleKind.NOT_STARTED: gettext_lazy("An occurrence was due some time ago, and its run has not started."),
    RuleKind.NOT_FINISHED: gettext_lazy(
        "The run of a schedule will not be finished at a time of the day. It is told while there is still time, by the "
        "usual durations of the schedule."
    ),
    RuleKind.FAILED_IN_A_ROW: gettext_lazy("The last runs of a schedule have all failed."),
    RuleKind.SLOW: gettext_lazy("A run takes longer than 95 % of the runs of its schedule, times a factor."),
    RuleKind.SKIPPED: gettext_lazy("An occurrence did not run. The alert gives the reason."),
    RuleKind.PAUSED_BY_FAILURES: gettext_lazy("A schedule was paused by its rule, because its last runs have failed."),
    RuleKind.GROUP_BACK: gettext_lazy("An error that was resolved has come back. The alert names the release."),
    RuleKind.BREAKER: gettext_lazy("A circuit breaker lets the runs of a handler wait, because too many failed."),
    RuleKind.NO_PRODUCER: gettext_lazy("No producer is alive, so no occurrence is claimed."),
    RuleKind.NO_CONSUMER: gettext_lazy("Runs wait in a queue that no alive consumer serves."),
    RuleKind.BROKER_AWAY: gettext_lazy("The broker has not answered for some time."),
    RuleKind.DATABASE_AWAY: gettext_lazy("The database has not answered for some time."),
    RuleKind.DISK: gettext_lazy("Less of the disk of DATA_DIR or MEDIA_ROOT is free than the threshold."),
    RuleKind.CLOCK: gettext_lazy("The clock of a process differs from the clock of the database."),
    RuleKind.HOLD: gettext_lazy("The processes hold: the database belongs to another deployment, or was restored."),
}
"""For each kind: when it tells."""

LABELS: Mapping[RuleKind, Any] = {
    RuleKind.INBOX: gettext_lazy("More than (failures)"),
    RuleKind.RETRIED: gettext_lazy("More than (retries)"),
    RuleKind.RETRY_SHARE: gettext_lazy("More than (%)"),
    RuleKind.NOT_STARTED: gettext_lazy("After the due time"),
    RuleKind.FAILED_IN_A_ROW: gettext_lazy("Failures in a row"),
    RuleKind.SLOW: gettext_lazy("Factor"),
    RuleKind.BROKER_AWAY: gettext_lazy("Away for"),
    RuleKind.DATABASE_AWAY: gettext_lazy("Away for"),
    RuleKind.DISK: gettext_lazy("Free, less than (%)"),
}
"""For each kind with a threshold: the label of its field."""

COUNTS = (RuleKind.INBOX, RuleKind.RETRIED, RuleKind.FAILED_IN_A_ROW)
"""The kinds whose threshold is a whole number."""

_WORDS: Mapping[RuleKind, Any] = {
    RuleKind.INBOX: gettext_lazy("more than %(value)s"),
    RuleKind.RETRIED: gettext_lazy("more than %(value)s retries"),
    RuleKind.RETRY_SHARE: gettext_lazy("more than %(value)s %%"),
    RuleKind.NOT_STARTED: gettext_lazy("%(value)s after the due time"),
    RuleKind.FAILED_IN_A_ROW: gettext_lazy("%(value)s times in a row"),
    RuleKind.SLOW: gettext_lazy("%(value)s times the usual"),
    RuleKind.BROKER_AWAY: gettext_lazy("for %(value)s"),
    RuleKind.DATABASE_AWAY: gettext_lazy("for %(value)s"),
    RuleKind.DISK: gettext_lazy("less than %(value)s %% free"),
}


def kind_of(rule: Any) -> RuleKind | None:
    """The kind of a rule; None if this version of the code does not know it."""
    try:
        return RuleKind(rule.kind)
    except ValueError:
        return None


def threshold_words(rule: Any) -> str:
    """The threshold, such as `more than 10`; `EMPTY` for a kind without one."""
    kind = kind_of(rule)
    if kind is None:
        return EMPTY
    if KINDS[kind].needs_schedule:
        return _("not finished by %(time)s") % {"time": visible_text(rule.at, 10) or "?"}
    for threshold, bounds in KINDS[kind].bounds.items():
        stored = rule.number if threshold is Threshold.NUMBER else rule.seconds
        value = bounds.default if stored is None else stored
        return str(_WORDS[kind]) % {"value": shown(value, threshold)}
    return EMPTY


def shown(value: Any, threshold: Threshold) -> str:
    """A value of a threshold. Plain SQL may have written a value that is no number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return visible_text(value, 20)
    if threshold is Threshold.SECONDS:
        return format_duration(value)
    return number_format(int(value) if value == int(value) else value, force_grouping=True)
