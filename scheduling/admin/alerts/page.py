"""The page of one alert: its facts, what happened when, and the messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.alerts.columns import lasted
from scheduling.admin.alerts.told import Event, State, Told, is_muted, not_told, told_of, told_rows
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import badge, severity_badge
from scheduling.admin.ui.links import admin_url, link
from scheduling.admin.ui.times import EMPTY, time_tag, time_with_relative
from scheduling.core.alert_rules import RuleKind
from scheduling.core.text import visible_text
from scheduling.models import Alert
from scheduling.operations.alerts import may_mute

NAME_CHARS = 150

LISTS: dict[str, str] = {
    RuleKind.INBOX: "failedexecution",
    RuleKind.GROUP_BACK: "failedexecution",
    RuleKind.BREAKER: "breaker",
    RuleKind.NO_PRODUCER: "process",
    RuleKind.NO_CONSUMER: "process",
    RuleKind.DISK: "process",
    RuleKind.CLOCK: "process",
    RuleKind.HOLD: "deployment",
}
"""For an alert that is about no single schedule or execution: the list that shows more, by the kind of the rule."""


class Moment(NamedTuple):
    """Something that has happened to the alert."""

    at: datetime
    said: str

    @property
    def shown(self) -> str:
        """The instant as HTML."""
        return time_tag(self.at)


def alert_page(row: Alert, viewer: Viewer, may_act: bool) -> dict[str, Any]:
    """The template context of the page.

    Args:
        row: an alert of `with_notices`.
        may_act: whether the user may acknowledge and mute.
    """
    told, muted = told_of(row), row.is_open and is_muted(row, viewer.now)
    return {
        "original": row,
        "title": visible_text(row.subject, NAME_CHARS) or EMPTY,
        "severity": severity_badge(row.severity),
        "state": _state(row),
        "lasted": lasted(row),
        "seen": visible_text(row.seen, 1_000),
        "advice": visible_text(row.advice, 500),
        "muted": _mute_words(row) if muted else "",
        "facts": _facts(row, viewer),
        "moments": sorted(_moments(row, told), key=lambda moment: moment.at),
        "messages_shown": told_rows(told, viewer.now),
        "not_told": "" if told else not_told(row, viewer.now),
        **_buttons(row, viewer, muted, may_act),
    }


def _buttons(row: Alert, viewer: Viewer, muted: bool, may_act: bool) -> dict[str, str]:
    """The addresses of the buttons that change something now."""
    if not may_act or not row.is_open:
        return {}
    switch = "take_back" if row.acknowledged_at is not None else "acknowledge"
    found = {switch: admin_url(f"scheduling_alert_{switch}", row.pk)}
    if may_mute(viewer.visible, row):
        found["mute"] = admin_url("scheduling_alert_mute", row.pk)
    if muted and "mute" in found:
        found["unmute"] = admin_url("scheduling_alert_unmute", row.pk)
    return found


def _state(row: Alert) -> SafeString:
    if not row.is_open:
        return badge(_("over"), "check", "good")
    if row.acknowledged_at is not None:
        return badge(_("open, acknowledged"), "hand", "busy")
    return badge(_("open"), "warn", "warn")


def _mute_words(row: Alert) -> SafeString:
    said = format_html(_("Muted by {} until {}."), _name(row.muted_by), time_tag(row.muted_until))
    reason = visible_text(row.mute_reason, NAME_CHARS)
    return format_html("{} {}", said, reason) if reason else said


def _facts(row: Alert, viewer: Viewer) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [
        (_("About"), row.get_kind_display()),
        (_("Rule"), _linked(_name(row.rule_name), _rule_address(row, viewer))),
    ]
    if row.schedule_id is not None:
        schedule = viewer.visible.schedules().filter(pk=row.schedule_id).first()
        if schedule is not None:
            found.append((_("Schedule"), _linked(visible_text(schedule, NAME_CHARS), viewer.scheduler(schedule.pk))))
    if row.execution is not None:
        there = viewer.visible.executions().filter(pk=row.execution).exists()
        name = _("no. %(number)d") % {"number": row.execution}
        gone = _("%(name)s, removed by retention") % {"name": name}
        found.append((_("Execution"), _linked(name, viewer.execution(row.execution)) if there else gone))
    if (model := LISTS.get(row.kind)) is not None and (address := viewer.list_of(model)):
        found.append((_("Look at"), link(address, _("the list"))))
    if row.group is not None:
        found.append((_("User group"), _name(row.group)))
    found.append((_("Began"), time_with_relative(row.started_at, viewer.now)))
    if row.is_open:
        found.append((_("Last seen"), time_with_relative(row.seen_at, viewer.now)))
    else:
        found.append((_("Over"), time_with_relative(row.ended_at, viewer.now)))
    return found


def _rule_address(row: Alert, viewer: Viewer) -> str:
    if row.rule_id is None or not viewer.sees("alertrule"):
        return ""
    seen = viewer.visible.alert_rules().filter(pk=row.rule_id).exists()
    return admin_url("scheduling_alertrule_change", row.rule_id) if seen else ""


def _linked(text: str, address: str) -> SafeString | str:
    return link(address, text) if address else text


def _name(text: object) -> str:
    return visible_text(text, NAME_CHARS) or EMPTY


def _moments(row: Alert, told: list[Told]) -> Iterator[Moment]:
    """What happened, without what the facts say better."""
    yield Moment(row.started_at, _("It began."))
    for one in told:
        if one.ended_at is not None:
            yield Moment(one.ended_at, _moment_of(one))
    if row.acknowledged_at is not None:
        yield Moment(row.acknowledged_at, _("Acknowledged by %(user)s.") % {"user": _name(row.acknowledged_by)})
    if row.ended_at is not None:
        yield Moment(row.ended_at, _("It was over."))


def _moment_of(told: Told) -> str:
    channel = {"channel": told.channel}
    if told.state == State.ASIDE:
        return _("%(channel)s was not told. %(reason)s") % {**channel, "reason": told.error}
    if not told.is_sent:
        return _("%(channel)s could not be told: the message was given up.") % channel
    if told.event == Event.END:
        return _("%(channel)s was told that it is over.") % channel
    return _("%(channel)s was told.") % channel
