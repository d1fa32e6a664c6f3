"""Finds circuit breakers that keep runs waiting, and those that have closed lately."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader
from scheduling.models import Breaker
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import closed_breakers, open_breakers


def examine(present: Present) -> Iterator[Finding]:
    """Report the breakers that are open or half open, and those that have closed within the last hour."""
    waits = warn(
        "breakers",
        _("Circuit breakers keep runs waiting: %(count)s."),
        _("Repair what the runs need. They go on when a probe succeeds, or when you reset the breaker."),
    )
    yield from named(waits, present.rows(open_breakers), _named, total=present.count(open_breakers))
    over = warn(
        "closed breakers",
        _("Circuit breakers have closed again within the last hour: %(count)s."),
        _("Nothing is to be done. Look at why they had opened."),
    )
    yield from named(over, present.rows(closed_breakers), _named, total=present.count(closed_breakers))


def _named(breaker: Breaker) -> Named:
    since = "" if breaker.since is None else f"{breaker.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    about = _("%(state)s since %(since)s, opened %(times)s times so far. %(reason)s") % {
        "state": breaker.get_state_display(),
        "since": since,
        "times": breaker.openings,
        "reason": for_reader(breaker.reason, 200),
    }
    return Named(breaker.subject, about.strip())
