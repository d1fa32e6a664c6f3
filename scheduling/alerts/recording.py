"""Records the alerts: which begin, go on and are over. Only what has changed is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model

from scheduling.alerts.look import Look
from scheduling.alerts.notices import tell_ends
from scheduling.alerts.reading import readable
from scheduling.alerts.repeated import RepeatedQuery
from scheduling.alerts.runs import usable_instant
from scheduling.alerts.wanted import MOST_RULES, Wanted
from scheduling.core.alert_rules import KINDS
from scheduling.core.alerts import MOST_SUBJECTS, Changes, Situation, Standing, changes, open_key
from scheduling.core.chunks import chunks
from scheduling.logs import get_logger
from scheduling.models import Alert
from scheduling.processes.database import each_or_all

log = get_logger(__name__)

MOST_OPEN = 2 * MOST_RULES * MOST_SUBJECTS

MOST_CHANGED = 500
"""So many alerts get new texts in one evaluation. The others follow in the next one."""

TEXTS = ("key", "subject", "seen", "advice", "schedule", "execution", "group")
"""The columns of an alert that a situation has, in the order of its fields."""

NEW_GROUP: Mapping[str, Any] = {
    "told_at": None, "acknowledged_at": None, "acknowledged_by": "", "muted_until": None, "muted_by": "",
    "mute_reason": "",
}  # fmt: skip
"""An alert that gets another group is new to the users and the channels of this group. What a user of the former group
has done and written is not for them."""

NO_RULE = 0
"""Stands for the rule of alerts whose rule was deleted."""


def _standing(values: Sequence[Any]) -> tuple[int, str, Standing]:
    """The rule, the key and the facts of an open alert."""
    pk, rule, *texts, severity, gone_at, seen_at = values
    situation = Situation(*texts)
    standing = Standing(pk, usable_instant(gone_at), usable_instant(seen_at), situation, severity)
    return rule or NO_RULE, situation.key, standing


_open = RepeatedQuery(
    lambda _now: Alert.objects.filter(ended_at=None).order_by("pk"),
    ("pk", "rule", *TEXTS, "severity", "gone_at", "seen_at"),
    MOST_OPEN,
    _standing,
)


def read_standing() -> dict[int, dict[str, Standing]]:
    """The open alerts of each rule, by their keys. An alert with unreadable columns is recorded anew."""
    found: dict[int, dict[str, Standing]] = defaultdict(dict)
    read, bad = _open.rows_and_bad()
    for rule, key, standing in read:
        found[rule][key] = standing
    for some in chunks(bad):
        rows = Alert.objects.filter(ended_at=None, pk__in=some).order_by("pk")
        for pk, rule, key in readable(rows, len(some), ("pk", "rule", "key")):
            found[rule or NO_RULE][key] = Standing(pk)
    return found


def record(rules: Sequence[Wanted], found: Mapping[int, Sequence[Situation]], look: Look) -> None:
    """Record what follows from the situations that these rules have found."""
    now, budget = look.now, MOST_CHANGED
    begun: list[Alert] = []
    seen: list[int] = []
    gone: list[int] = []
    over: list[int] = []
    for rule in rules:
        standing = look.standing.get(rule.pk, {})
        if not standing and not found[rule.pk]:
            continue
        calm = timedelta(seconds=KINDS[rule.kind].calm_seconds)
        result: Changes = changes(standing, found[rule.pk], now, calm)
        begun += [_alert(rule, situation, now) for situation in result.begun]
        for known, situation in result.changed[: max(budget, 0)]:
            anew = NEW_GROUP if known.situation and known.situation.group != situation.group else {}
            _update([known.pk], seen_at=now, gone_at=None, severity=rule.severity, **_columns(situation), **anew)
        budget -= len(result.changed)
        seen += [one.pk for one in result.seen]
        gone += [one.pk for one in result.gone]
        over += [one.pk for one in result.over]
        ended = {one.pk for one in result.over}
        _follow(rule, [one for one in standing.values() if one.pk not in ended])
    if begun:
        each_or_all(begun, Alert.objects.bulk_create, _refused)
    for some in chunks(seen):
        _update(some, seen_at=now)
    for some in chunks(gone):
        _update(some, gone_at=now)
    end(over, now)


def _follow(rule: Wanted, alerts: Iterable[Standing]) -> None:
    """Give the open alerts the present severity of their rule. The channels that want it are told then."""
    other = [one.pk for one in alerts if one.severity not in (None, rule.severity)]
    for some in chunks(other):
        _update(some, severity=rule.severity, told_at=None)


def _alert(rule: Wanted, situation: Situation, now: datetime) -> Alert:
    return Alert(
        rule_id=rule.pk, rule_name=rule.name, kind=rule.kind.value, severity=rule.severity,
        open_key=open_key(rule.pk, situation.key), started_at=now, seen_at=now, **_columns(situation),
    )  # fmt: skip


def _columns(situation: Situation) -> dict[str, Any]:
    keys = {"schedule": "schedule_id", "group": "group_id"}
    return {keys.get(name, name): getattr(situation, name) for name in TEXTS}


def _refused(alert: Model, error: Exception) -> None:
    """An alert that the database refuses is not begun: its rule or its schedule may have been deleted meanwhile, or
    another process may have begun it."""
    log.info("An alert was not begun: %s: %s", alert, error)


def _update(keys: Sequence[int], **columns: Any) -> None:
    """Change open alerts. If the database refuses one, the others are changed all the same."""

    def write(some: Sequence[int]) -> None:
        Alert.objects.filter(pk__in=some, ended_at=None).update(**columns)

    each_or_all(keys, write, lambda pk, error: log.info("The alert %s cannot be changed: %s", pk, error))


def end(alerts: Iterable[int], now: datetime) -> None:
    """End these open alerts. The channels that were told of the start are told of the end."""

    def write(some: Sequence[int]) -> None:
        Alert.objects.filter(pk__in=some, ended_at=None).update(ended_at=now, open_key=None)
        tell_ends(some)

    for some in chunks(list(alerts)):
        each_or_all(some, write, lambda pk, error: log.info("The alert %s cannot be ended: %s", pk, error))
