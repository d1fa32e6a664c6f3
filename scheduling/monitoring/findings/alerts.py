"""Finds alerts that no one has acknowledged, messages that cannot be delivered, and rules that no process evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertWatch
from scheduling.models.alert_watch import ONLY, instant_of
from scheduling.models.message_error import message_error
from scheduling.models.process import AHEAD
from scheduling.models.time_words import format_span
from scheduling.monitoring.findings import mail
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import new_alerts, new_critical_alerts, rules_that_tell, undelivered

NOT_EVALUATED_LONG = timedelta(minutes=2)
"""The rules are evaluated several times in this span."""


def examine(present: Present) -> Iterator[Finding]:
    """Report open alerts that are new, what cannot be delivered or is not sent, and that no process evaluates."""
    yield from _watch(present)
    yield from _alerts(present)
    yield from _undelivered(present)
    yield from mail.examine(present)


def _alerts(present: Present) -> Iterator[Finding]:
    total = present.count(new_alerts)
    critical: Any = present.count(new_critical_alerts) if total else 0
    seen = _("Open alerts that are not acknowledged: %(count)s.")
    if critical:
        seen = _("Open alerts that are not acknowledged: %(count)s, critical: %(critical)s.")
    finding = warn("alerts", seen, _("Look at them, and acknowledge those that you look after."))
    yield from named(finding, present.rows(new_alerts), _named_alert, total=total, critical=critical)


def _named_alert(row: Alert) -> Named:
    name = visible_text(f"{row.rule_name}: {row.subject}", 120)
    return Named(name, f"{row.get_severity_display()}: {visible_text(row.seen, 200)}", row.pk)


def _undelivered(present: Present) -> Iterator[Finding]:
    finding = warn(
        "alert messages",
        _("Messages of alerts that cannot be delivered: %(count)s."),
        _("Send a test on the page of the channel, and mend what it says."),
    )
    rows = present.rows(undelivered).annotate(tells_of_others=present.visible.tells_of_others("pk"))
    yield from named(finding, rows, _named_message, total=present.count(undelivered))


def _named_message(row: Any) -> Named:
    about = _("%(state)s after %(tries)d tries: %(error)s") % {
        "state": row.get_state_display(),
        "tries": row.tries,
        "error": message_error(row.error, 200, tells_of_others=row.tells_of_others),
    }
    return Named(visible_text(row.channel_name, 100), about)


def _watch(present: Present) -> Iterator[Finding]:
    """The dead-man's switch has to be watched, too."""
    if not present.count(rules_that_tell):
        return
    stored = AlertWatch.objects.filter(pk=ONLY).values_list("evaluated_at", flat=True).first()
    advice = _("Start a producer, a consumer or run_web, or run evaluate_alerts from a crontab.")
    if not stored:
        yield warn(
            "alert watch", _("No process has evaluated the alert rules yet, so no one is told of anything."), advice
        )
        return
    at = instant_of(stored)
    # An instant that lies ahead was written before the clock was set back. It says nothing about the time since then.
    if at is not None and -AHEAD <= present.now - at <= NOT_EVALUATED_LONG:
        return
    facts = {"time": format_span((present.now - at).total_seconds()) if at is not None and at < present.now else "?"}
    seen = _("No process has evaluated the alert rules for %(time)s, so no one is told of anything.")
    yield warn("alert watch", seen % facts, advice)
