"""Finds schedules that their own rule has paused, because their last runs have failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.reading import readable
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.known_sentences import for_reader
from scheduling.models import Scheduler
from scheduling.monitoring.findings.watched import paused_by_failures as paused_rows

MOST = 500


def paused_by_failures(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """A schedule was paused after failures in a row, and is still paused."""
    scopes, rows = Scopes(rules), paused_rows(look.now)
    named = Scheduler.objects.filter(pk__in=list(scopes.named), paused_for="failures", status=False).order_by("pk")
    reasons = {
        pk: reason
        for found in (rows, named)
        for pk, reason in readable(found, max(MOST, len(scopes.named)), ("pk", "pause_reason"))
    }
    for pk, schedule in look.schedules(reasons.keys()).items():
        for rule in scopes.of(pk, schedule.group):
            yield (
                rule,
                Situation(
                    f"schedule {pk}",
                    schedule.name,
                    _("Its rule has paused it: %(reason)s") % {"reason": for_reader(reasons[pk], 300)},
                    _("Fix the cause, and resume the schedule. Republish the failures that are still needed."),
                    pk,
                    None,
                    schedule.group,
                ),
            )
