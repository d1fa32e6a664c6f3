"""Whether alerts reach a channel at all."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduling.models.alert_rule import AlertRule
from scheduling.models.channel import Channel


def telling_rules() -> QuerySet[AlertRule]:
    """The rules that are on and have a channel: their own, or one that is told by default."""
    own = AlertRule.channels.through._default_manager.filter(alertrule=OuterRef("pk"))
    default = Channel._default_manager.filter(tells_by_default=True)
    return AlertRule.objects.filter(Q(Exists(own)) | Q(Exists(default)), enabled=True)


def tells_a_channel() -> bool:
    """Whether a rule is on that has a channel."""
    return telling_rules().exists()
