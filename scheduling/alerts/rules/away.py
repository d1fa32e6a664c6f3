"""Finds a broker that cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.utils.translation import gettext as _

from scheduling.alerts.brokers import AWAY_KEY
from scheduling.alerts.look import Look
from scheduling.alerts.wanted import Wanted, span_of
from scheduling.core.alerts import Situation
from scheduling.models import AlertRule


def brokers_away(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The broker cannot be reached for longer than the rule allows."""
    for rule in rules:
        yield from ((rule, situation) for situation in (*_away(rule.span, look), *_alarms(rule.span, look)))


def broker_away(rule: AlertRule, look: Look) -> Iterator[Situation]:
    """The same for one rule as it is stored, without the database.

    Raises:
        RuleProblem: the span of the rule is out of bounds.
    """
    yield from _away(span_of(rule), look)


def _alarms(span: timedelta, look: Look) -> Iterator[Situation]:
    """The broker can be reached, and takes no messages: an alarm of its memory or disk."""
    why, seconds = max((process.alarm for process in look.present.alive), key=lambda alarm: alarm[1], default=("", 0.0))
    if why and seconds >= span.total_seconds():
        yield Situation(
            "alarm",
            _("broker"),
            _("The broker takes no messages: %(reason)s") % {"reason": why},
            _("Free memory or disk on the host of the broker. Nothing is lost: the runs start afterwards."),
        )


def _away(span: timedelta, look: Look) -> Iterator[Situation]:
    if look.broker is None or look.broker.away_seconds < span.total_seconds():
        return
    yield Situation(
        AWAY_KEY,
        _("broker"),
        _("The broker cannot be reached: %(reason)s") % {"reason": look.broker.reason},
        _("Start the broker, or mend the connection. Nothing is lost: runs are published as soon as it is back."),
    )
