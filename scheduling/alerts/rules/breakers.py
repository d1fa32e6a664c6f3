"""Finds circuit breakers that keep runs waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.repeated import RepeatedQuery, as_they_are
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation
from scheduling.core.breaker import BreakerState
from scheduling.core.known_sentences import for_reader
from scheduling.monitoring.findings.watched import open_breakers

MOST = 500


_open = RepeatedQuery(open_breakers, ("pk", "type", "name", "state", "openings", "reason"), MOST, as_they_are)


def breaker(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """A circuit breaker is open or half open. The last error is not told: it may name rows of a group."""
    for _pk, type_, name, state, openings, reason in _open.rows(look.now):
        half = state == BreakerState.HALF_OPEN.value
        seen = _("It lets waiting runs through one after another.") if half else _("It is open. Runs wait.")
        facts = {"seen": seen, "reason": for_reader(reason, 200), "times": openings}
        for rule in rules:
            yield (
                rule,
                Situation(
                    f"breaker {type_} {name}",
                    _("circuit breaker of the %(type)s %(name)s") % {"type": type_, "name": name},
                    _("%(seen)s %(reason)s It has opened %(times)s times so far.") % facts,
                    _("Repair what the runs need. They go on when a probe succeeds, or when you reset the breaker."),
                ),
            )
