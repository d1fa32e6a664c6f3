"""Finds a heartbeat that the monitor outside does not get."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core.known_sentences import for_reader
from scheduling.core.pings import host_of
from scheduling.core.text import visible_text
from scheduling.models import AlertWatch
from scheduling.models.alert_watch import ONLY, instant_of
from scheduling.models.time_words import format_span
from scheduling.monitoring.findings.finding import Finding, ok, warn
from scheduling.monitoring.findings.present import Present

MISSING_LONG = timedelta(minutes=5)
"""A heartbeat is sent about once a minute."""


def examine(present: Present) -> Iterator[Finding]:
    """Report how long ago the monitor has got a heartbeat, and why it gets none. Without a monitor, nothing."""
    url = get_conf().heartbeat_url
    if not url:
        return
    rows = AlertWatch.objects.filter(pk=ONLY).values_list("heartbeat_at", "heartbeat_error")
    seconds, error = rows.first() or (0, "")
    facts = {"host": visible_text(host_of(url), 100)}
    if error:
        seen = _("The heartbeat to %(host)s is not delivered: %(error)s") % {**facts, "error": for_reader(error, 300)}
        yield warn("heartbeat", seen, _("Correct CRON_HEARTBEAT_URL, or let the processes reach this host."))
        return
    age = _age(seconds, present.now)
    if age is not None and age <= MISSING_LONG:
        seen = _("The last heartbeat to %(host)s was delivered %(time)s ago.")
        yield ok("heartbeat", seen % {**facts, "time": format_span(max(0.0, age.total_seconds()))})
        return
    seen = _("The process that evaluates the alerts sends no heartbeat to %(host)s.") % facts
    yield warn("heartbeat", seen, _("Set CRON_HEARTBEAT_URL for all processes, and see that one evaluates the alerts."))


def _age(seconds: int, now: datetime) -> timedelta | None:
    """The age of an instant in seconds since 1970; None if it is no present one. Plain SQL may have written it."""
    at = instant_of(seconds)
    return now - at if at is not None and now - at >= -MISSING_LONG else None
