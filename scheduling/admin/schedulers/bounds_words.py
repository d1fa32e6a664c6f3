"""The bounds of a schedule's runs in words, for its page."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.times import format_duration
from scheduling.core.run_bounds import MOST_FAILURES, is_bound, runs_before
from scheduling.core.start_deadline import SECONDS
from scheduling.models import Scheduler


def bounds_in_words(row: Scheduler) -> list[tuple[str, str]]:
    """The label and the text of each bound that applies. A value that plain SQL has written may be no bound."""
    found = []
    within, failures = row.start_within_seconds, row.pause_after_failures
    if not row.stay_alive and type(within) is int and SECONDS[0] <= within <= SECONDS[1]:
        text = _("at most %(time)s after it was due; later it does not run")
        found.append((_("Start deadline"), text % {"time": format_duration(within)}))
    if row.date_time is None and is_bound(row.max_runs):
        found.append((_("Number of runs"), _runs(row, row.max_runs or 0)))
    if not row.stay_alive and type(failures) is int and 1 <= failures <= MOST_FAILURES:
        text = ngettext("%(count)d failure", "%(count)d failures in a row", failures)
        found.append((_("Pause after failures"), text % {"count": failures}))
    return found


def _runs(row: Scheduler, most: int) -> str:
    counted = runs_before(row.runs_counted, row.counted_for, most) if row.status else row.runs_counted
    facts = {"most": number_format(most, force_grouping=True), "count": number_format(counted, force_grouping=True)}
    return _("%(count)s of %(most)s; then it is paused") % facts
