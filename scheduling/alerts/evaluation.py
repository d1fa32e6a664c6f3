"""Evaluates the rules: alerts begin, go on and end, and notices of them wait for the channels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.notices import tell_starts
from scheduling.alerts.reading import savepoint
from scheduling.alerts.recording import end, read_standing, record
from scheduling.alerts.rules import FINDERS
from scheduling.alerts.wanted import RuleProblem, Rules, Wanted, read_rules
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import Situation, as_stored, bounded
from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.models import AlertRule
from scheduling.models.alert_rule import ERROR_LENGTH
from scheduling.processes.database import is_away

log = get_logger(__name__)

Found = dict[int, list[Situation]]
"""The situations that each rule has found."""


def evaluate(look: Look) -> None:
    """Evaluate each rule once, and record what follows. The caller holds the lease.

    A rule that cannot be evaluated records why. Its alerts stay as they are. While this process holds, only the rules
    about a hold are evaluated, and all other alerts stay as they are. The texts are in the language of the site.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    with translation.override(settings.LANGUAGE_CODE):
        rules = read_rules()
        if look.hold:
            rules.wanted = [rule for rule in rules.wanted if rule.kind is RuleKind.HOLD]
        _without_schedule(rules, look)
        look.wanted, look.standing = rules.wanted, read_standing()
        found = _found(look, rules.problems)
        record([rule for rule in rules.wanted if rule.pk in found], found, look)
        _note_problems(rules, [*found, *rules.problems])
        if not look.hold:
            known = set(rules.keys)
            end((one.pk for pk, own in look.standing.items() if pk not in known for one in own.values()), look.now)
        tell_starts(look.now, only_hold=bool(look.hold))


def _without_schedule(rules: Rules, look: Look) -> None:
    """Leave out the rules that name a schedule which cannot be read. Plain SQL may have deleted it."""
    there = look.schedules({rule.schedule for rule in rules.wanted if rule.schedule is not None})
    for rule in list(rules.wanted):
        if rule.schedule is not None and rule.schedule not in there:
            rules.wanted.remove(rule)
            rules.problems[rule.pk] = _("The schedule of the rule does not exist, or cannot be read.")


def _found(look: Look, problems: dict[int, str]) -> Found:
    """What the rules of each kind have found. Adds the problems of the rules that cannot be evaluated."""
    by_kind: dict[RuleKind, list[Wanted]] = defaultdict(list)
    for rule in look.wanted:
        by_kind[rule.kind].append(rule)
    found: Found = {}
    for kind, rules in by_kind.items():
        if kind not in FINDERS:
            continue
        try:
            found |= _asked(kind, rules, look)
        except Exception as error:
            if is_away(error):
                raise
            found |= _one_by_one(kind, rules, look, problems)
    return found


def _asked(kind: RuleKind, rules: Sequence[Wanted], look: Look) -> Found:
    found: Found = {rule.pk: [] for rule in rules}
    with savepoint():
        for rule, situation in FINDERS[kind](rules, look):
            found[rule.pk].append(as_stored(situation))
    return {pk: bounded(own, look.standing.get(pk, {}), _further) if own else [] for pk, own in found.items()}


def _one_by_one(kind: RuleKind, rules: Iterable[Wanted], look: Look, problems: dict[int, str]) -> Found:
    found: Found = {}
    for rule in rules:
        try:
            found |= _asked(kind, [rule], look)
        except Exception as error:
            if is_away(error):
                raise
            log.warning("The alert rule %s cannot be evaluated: %s: %s", rule.pk, type(error).__name__, error)
            known = isinstance(error, RuleProblem)
            problems[rule.pk] = str(error) if known else f"{type(error).__name__}: {error}"
    return found


def _further(number: int, group: int | None) -> Situation:
    text = _("The same holds for further subjects. There are at least %(count)d.") % {"count": number}
    return Situation(f"further {group or ''}", _("further subjects"), text, group=group)


def _note_problems(rules: Rules, evaluated: Iterable[int]) -> None:
    """Record why rules could not be evaluated, and forget it for those that could."""
    errors: Mapping[int, str] = rules.problems
    for pk in evaluated:
        error = visible_text(errors.get(pk, ""), ERROR_LENGTH)[:ERROR_LENGTH]
        if rules.errors.get(pk) != error:
            try:
                with savepoint():
                    AlertRule.objects.filter(pk=pk).update(error=error)
            except Exception as refused:
                if is_away(refused):
                    raise
                log.warning("The error of the alert rule %s cannot be recorded: %s", pk, refused)
