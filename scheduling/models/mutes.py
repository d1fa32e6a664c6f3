"""The condition on alerts and rules that are not muted."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from scheduling.core.alert_mutes import FARTHEST_END


def not_muted(now: datetime, path: str = "") -> Q:
    """The condition on rows that are not muted, as `core.alert_mutes.is_muted` says it of one row.

    Args:
        path: the relation that leads to these rows, such as `rule__`.
    """
    until = f"{path}muted_until"
    return Q(**{until: None}) | Q(**{f"{until}__lte": now}) | Q(**{f"{until}__gt": now + FARTHEST_END})
