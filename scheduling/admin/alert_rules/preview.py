"""What a rule would tell now. It is evaluated without recording anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from django.db import transaction
from django.utils.translation import gettext as _

from scheduling.admin.alert_rules.words import kind_of
from scheduling.admin.common.viewer import Viewer
from scheduling.alerts.look import Look
from scheduling.alerts.memory import Memory
from scheduling.alerts.rules import FINDERS
from scheduling.alerts.wanted import RuleProblem, wanted_of
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import MOST_SUBJECTS, Situation
from scheduling.core.text import visible_text
from scheduling.models import AlertRule
from scheduling.operations.alert_rules import is_own
from scheduling.processes.database import is_away

MOST_SHOWN = 20

ATTRIBUTES = ("pk", "name", "kind", "severity", "number", "seconds", "at", "schedule_id", "group_id")
"""The attributes of a rule in the order of `wanted_of`."""

FROM_MEMORY = (RuleKind.BROKER_AWAY, RuleKind.DATABASE_AWAY)
"""Only the process that evaluates the rules knows for how long they have been away."""


@dataclass
class Preview:
    """What was found, or why nothing could be looked for.

    Args:
        more: whether there is more than what is listed.
    """

    found: list[Situation] = field(default_factory=list)
    more: bool = False
    problem: str = ""


def preview_of(rule: AlertRule, viewer: Viewer) -> Preview:
    """Evaluate the rule for a page. What the user does not see is left out."""
    kind = kind_of(rule)
    finder = FINDERS.get(kind) if kind is not None else None
    if not is_own(viewer.visible, rule):
        return Preview(problem=_("The rule is about all groups, so only users who see all groups can look."))
    if kind in FROM_MEMORY:
        return Preview(problem=_("Only the process that evaluates the rules knows for how long it has been away."))
    if finder is None:
        return Preview(problem=_("This version of the code cannot evaluate the rule."))
    try:
        with transaction.atomic():
            wanted = wanted_of([getattr(rule, name) for name in ATTRIBUTES])
            look = Look(viewer.now, memory=Memory(), wanted=[wanted])
            found = [one for _rule, one in islice(finder([wanted], look), MOST_SUBJECTS + 1)]
            transaction.set_rollback(True)  # it only reads; nothing that it does stays
    except RuleProblem as problem:
        return Preview(problem=visible_text(problem, 400))
    except Exception as error:  # the evaluation sets such a rule aside, too
        if is_away(error):
            raise
        return Preview(problem=visible_text(f"{type(error).__name__}: {error}", 400))
    seen = [one for one in found if viewer.visible.shows_group(one.group)]
    return Preview(seen[:MOST_SHOWN], len(seen) > MOST_SHOWN)
