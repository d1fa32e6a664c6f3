"""Decides which channels are told of an alert, and lets their notices wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduling.alerts.reading import readable
from scheduling.alerts.repeated import KeyedQuery, RepeatedQuery, as_they_are
from scheduling.alerts.untold import UntoldAlerts, untold_at, untold_holds_at
from scheduling.core.alerts import tells
from scheduling.core.chunks import chunks
from scheduling.logs import get_logger
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel
from scheduling.models.prepared_over import PreparedOver
from scheduling.processes.database import each_or_all

log = get_logger(__name__)

MOST_AT_ONCE = 1_000
"""So many alerts are handed to the channels in one evaluation."""

MOST_CHANNELS = 10_000

ROUTING = ("pk", "least_severity", "group_id")
"""The columns of a channel that say of which alerts it is told."""

CALLED = (*ROUTING, "name", "kind", "address", "secret", "recipients")
"""These columns, and those with which a message is sent to the channel."""

Event = AlertNotice.Event


_untold, _untold_holds = UntoldAlerts(untold_at), UntoldAlerts(untold_holds_at)


def tell_starts(now: datetime, *, only_hold: bool = False) -> None:
    """Let the start of each open alert that is not muted wait for its channels.

    An alert without a channel stays untold, and is told if a channel comes while it lasts.

    Args:
        only_hold: whether only alerts about a hold are told, because the database may be a copy.
    """
    alerts = (_untold_holds if only_hold else _untold).rows(now)
    if not alerts:
        return
    channels = Routes({rule for _pk, rule, _severity, _group in alerts if rule is not None})
    chosen = {pk: told for pk, rule, severity, group in alerts if (told := channels.chosen(rule, severity, group))}
    for some in chunks(list(chosen)[:MOST_AT_ONCE]):
        each_or_all(
            some,
            lambda keys: _note_starts({pk: chosen[pk] for pk in keys}, now),
            lambda pk, error: log.warning("The start of the alert %s cannot be told: %s", pk, error),
        )


def _note_starts(chosen: Mapping[int, Sequence[Channel]], now: datetime) -> None:
    notices = [
        AlertNotice(alert_id=pk, channel=channel, event=Event.START)
        for pk, channels in chosen.items()
        for channel in channels
    ]
    AlertNotice.objects.bulk_create(notices, ignore_conflicts=True)
    # The channel may have lost its group and got it back. Nothing can have told it meanwhile.
    aside = AlertNotice.objects.filter(
        alert__in=list(chosen), event=Event.START, message__state=AlertMessage.State.ASIDE, message__tries=0
    )
    wanted = {(notice.alert_id, notice.channel_id) for notice in notices}
    again = [pk for pk, *pair in aside.values_list("pk", "alert", "channel") if tuple(pair) in wanted]
    if again:
        AlertNotice.objects.filter(pk__in=again).update(message=None)
    Alert.objects.filter(pk__in=list(chosen)).update(told_at=now)


def tell_ends(alerts: Collection[int]) -> None:
    """Let the end of these alerts wait for the channels that were told of their start.

    Whether a channel may still be told is decided when the end is sent (`aside`), so that the page can say why not.
    """
    starts = AlertNotice.objects.filter(alert__in=alerts, event=Event.START)
    told = starts.exclude(message__state=AlertMessage.State.ASIDE).values_list("alert", "channel")
    AlertNotice.objects.bulk_create(
        [AlertNotice(alert_id=alert, channel_id=channel, event=Event.END) for alert, channel in told],
        ignore_conflicts=True,
    )


def _channels_of(rules: Sequence[int]) -> QuerySet[Any, Any]:
    between = AlertRule.channels.through._default_manager.filter(alertrule__in=rules)
    return between.order_by("channel").values_list("alertrule", "channel")


_CHANNELS_OF_RULES = PreparedOver(_channels_of, int)


_NAMED = KeyedQuery(lambda: Channel.objects.order_by("pk"), ROUTING, as_they_are)
_DEFAULT = RepeatedQuery(
    lambda _now: Channel.objects.filter(tells_by_default=True).order_by("pk"), ROUTING, MOST_CHANNELS, as_they_are
)


class Routes:
    """The channels of rules. One that cannot be read is told of nothing, and the others are told.

    Args:
        rules: the primary keys of the rules.
        columns: the columns that the channels have, with `ROUTING`. An unreadable value in another column does no harm.
    """

    def __init__(self, rules: Collection[int], columns: Sequence[str] = ROUTING) -> None:
        self._columns = tuple(columns)
        self._of_rules: dict[int, list[int]] = {}
        keys = [key for key in rules if type(key) is int]  # SQLite stores any type
        for some in chunks(keys):
            for rule, channel in _CHANNELS_OF_RULES.rows(some):
                self._of_rules.setdefault(rule, []).append(channel)
        own = {key for named in self._of_rules.values() for key in named if type(key) is int}
        if self._columns == ROUTING:
            named, default = _NAMED.rows(own), _DEFAULT.rows()
        else:  # rows with secrets are not remembered
            rows = Channel.objects.order_by("pk")
            named = readable(rows.filter(pk__in=own), MOST_CHANNELS, self._columns) if own else []
            default = readable(rows.filter(tells_by_default=True), MOST_CHANNELS, self._columns)
        self._own = {one.pk: one for one in self._channels(named)}
        self._default = self._channels(default)

    def _channels(self, found: Iterable[tuple[Any, ...]]) -> list[Channel]:
        return [Channel(**dict(zip(self._columns, values, strict=True))) for values in found]

    def of(self, alert: Alert) -> Sequence[Channel]:
        """The channels that are told of this alert: those of its rule, or the default ones if the rule has none."""
        return self.chosen(alert.rule_id, alert.severity, alert.group_id)

    def chosen(self, rule: int | None, severity: str, group: int | None) -> Sequence[Channel]:
        """The channels that are told of an alert of this rule. A rule that names channels tells no default one."""
        named = self._of_rules.get(rule or 0)
        channels = [self._own[key] for key in named if key in self._own] if named else self._default
        return [one for one in channels if tells(severity, one.least_severity, group, one.group_id)]
