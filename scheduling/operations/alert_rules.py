"""Mutes alert rules, in the name of an actor, and says which rules an actor may change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone as clock

from scheduling.models import AlertRule
from scheduling.models.visibility import Visibility
from scheduling.operations.actor import Actor
from scheduling.operations.alerts import ACKNOWLEDGE, mute_edits, mute_reason, usable_end
from scheduling.operations.audit import record


def is_own(visible: Visibility, rule: Any) -> bool:
    """Whether a rule tells only of what this user sees. A user who does not see all groups may change no other rule.

    A rule without a group tells of the schedules of all groups.
    """
    return not visible.is_limited or (rule.group_id is not None and visible.shows_group(rule.group_id))


def mute_rule(actor: Actor, rule: AlertRule, until: datetime, reason: str = "") -> None:
    """Mute a rule: of what it finds, no channel is told until then. What lasts longer is told afterwards.

    Raises:
        Refused: FORBIDDEN, or INVALID if the end has passed or is too far away.
    """
    actor.must(ACKNOWLEDGE)
    usable_end(until)
    text = mute_reason(reason)
    with transaction.atomic():
        AlertRule.objects.filter(pk=rule.pk).update(
            muted_until=until, muted_by=actor.get_username()[:150], mute_reason=text
        )
        record(actor, [rule], "mute", mute_edits(rule, until, text))


def unmute_rule(actor: Actor, rule: AlertRule) -> bool:
    """End the mute of a rule. Returns whether it was muted.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(ACKNOWLEDGE)
    with transaction.atomic():
        muted = AlertRule.objects.filter(pk=rule.pk, muted_until__gt=clock.now())
        if not muted.update(muted_until=None, muted_by="", mute_reason=""):
            return False
        record(actor, [rule], "unmute", mute_edits(rule, None, ""))
    return True
