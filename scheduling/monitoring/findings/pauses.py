"""Finds what is paused: handlers, queues, the whole site."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import Pause
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import paused_work


def examine(present: Present) -> Iterator[Finding]:
    """Report the pauses, so that none is forgotten."""
    finding = warn(
        "pauses",
        _("Handlers, queues or the whole site are paused: %(count)s. What is due waits."),
        _("Resume them on the page Pauses when the reason is gone."),
    )
    yield from named(finding, present.rows(paused_work), _named, total=present.count(paused_work))


def _named(pause: Pause) -> Named:
    since = f"{pause.paused_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    about = _("since %(since)s: %(reason)s") % {"since": since, "reason": visible_text(pause.reason, 200)}
    return Named(pause.subject, about)
