"""Finds schedules that their own rule has paused, because their last runs have failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.repeated import KeyedQuery, RepeatedQuery, as_they_are
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.known_sentences import for_reader
from scheduling.models import Scheduler
from scheduling.monitoring.findings.watched import paused_by_failures as paused_rows

MOST = 500

_COLUMNS = ("pk", "pause_reason")

_paused = RepeatedQuery(paused_rows, _COLUMNS, MOST, as_they_are)
_paused_by_key = KeyedQuery(
    lambda: Scheduler.objects.filter(paused_for="failures", status=False).order_by("pk"), _COLUMNS, as_they_are
)


def paused_by_failures(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """A schedule was paused after failures in a row, and is still paused."""
    scopes = Scopes(rules)
    told = (one.situation.schedule for one in look.alerts_of(rules) if one.situation is not None)
    by_key = {*scopes.named, *(pk for pk in told if pk is not None)}
    reasons = dict([*_paused.rows(look.now), *_paused_by_key.rows(by_key)])
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
