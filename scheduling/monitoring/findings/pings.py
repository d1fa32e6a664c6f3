"""Finds pings that monitors did not get."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import Ping
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import dropped_pings, late_pings


def examine(present: Present) -> Iterator[Finding]:
    """Report the pings that have waited for more than ten minutes, and the ends of runs that no monitor was told."""
    late = warn(
        "late pings",
        _("Pings that wait for more than ten minutes: %(count)s."),
        _("Monitors may report a failure that is none. Look at the page of the run for the reason."),
    )
    yield from named(late, present.rows(late_pings), _named, load=_load, total=present.count(late_pings))
    dropped = warn(
        "dropped pings",
        _("Ends of runs that a monitor was not told in the last day: %(count)s."),
        _("Correct the ping URL of the schedule or the DSN of Sentry. The next run is told."),
    )
    yield from named(dropped, present.rows(dropped_pings), _named, load=_load, total=present.count(dropped_pings))


def _load(found: list[Ping]) -> None:
    prefetch_related_objects(found, "execution")


def _named(ping: Ping) -> Named:
    about = for_reader(ping.error, 200) or _("no try yet")
    return Named(
        visible_text(ping.execution, 100), f"{visible_text(ping.get_kind_display(), 40)}: {about}", ping.execution_id
    )
