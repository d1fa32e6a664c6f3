"""Stores the alerts of the invented shop: open, acknowledged, muted and over, with their messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from scheduling.models import Alert, AlertRule, Channel, Scheduler, SchedulerExecution
from tests.admin.rows import Rows
from tests.factories import AlertFactory, AlertMessageFactory, AlertNoticeFactory, AlertWatchFactory


def store_alerts(schedules: Mapping[str, Scheduler], failed: SchedulerExecution, now: datetime) -> Rows:
    """Store the rows. Return those of the two models that have pages."""
    AlertWatchFactory()
    team, on_call = Channel.objects.get(name="Shop team"), Channel.objects.get(name="On call")
    Channel.objects.filter(pk=team.pk).update(tells_by_default=True)
    Channel.objects.filter(pk=on_call.pk).update(least_severity="critical")
    rules = {rule.kind: rule for rule in AlertRule.objects.all()}
    orders = AlertRule.objects.create(
        name="Orders are in by half past six", kind="not_finished", severity="critical", at="06:30",
        schedule=schedules["Import orders DE"],
    )  # fmt: skip
    orders.channels.add(team, on_call)
    AlertRule.objects.filter(kind="slow").update(
        muted_until=now + timedelta(hours=3), muted_by="anna", mute_reason="The index is rebuilt today"
    )
    AlertRule.objects.filter(kind="clock").update(enabled=False)
    bounds = {"least": 1, "most": 90, "value": 500}
    wrong = _("The threshold must be from %(least)s to %(most)s, not %(value)s.") % bounds
    AlertRule.objects.filter(kind="disk").update(number=500, error=wrong)

    def alert(kind: str, subject: str, seen: str, minutes: int, **columns: object) -> Alert:
        rule = columns.pop("rule", rules.get(kind))
        made: Alert = AlertFactory(
            rule=rule, kind=kind, severity=rule.severity if rule else "warning", subject=subject, seen=seen,
            started_at=now - timedelta(minutes=minutes), told_at=now - timedelta(minutes=minutes), **columns,
        )  # fmt: skip
        return made

    # The sentences of the rules, in the language of the site, as the evaluation stores them.
    due = {"time": "06:30", "zone": "CET"}
    missed = _("It is to be finished by %(time)s %(zone)s, and no further run is due before.") % due
    late = alert(
        "not_finished", "Import orders DE", f"{missed} {_('It has failed.')}", 12, rule=orders,
        schedule=schedules["Import orders DE"], execution=failed.pk,
        advice=_("Fix the cause and republish it, or tell those who wait for it."),
    )  # fmt: skip
    many = _("Failures in the inbox: %(count)s. The limit is %(limit)d.") % {"count": 41, "limit": 10}
    inbox = alert("inbox", _("failed inbox"), many, 95, acknowledged_at=now - timedelta(minutes=80),
                  acknowledged_by="anna")  # fmt: skip
    row = schedules["Send invoices"]
    in_a_row = _("Its last runs have failed. In a row: %(count)d.") % {"count": 4}
    in_a_row += " " + _("The last error: %(error)s.") % {"error": "shop.errors.TaxError"}
    often = alert("failed_in_a_row", "Send invoices", in_a_row, 200, schedule=row,
                  advice=_("Fix the cause, then republish."), muted_until=now + timedelta(hours=5), muted_by="ben",
                  mute_reason="SHOP-4720: the new tax table comes at noon")  # fmt: skip
    queue = {"queue": "reports"}
    over = alert("no_consumer", _("queue “%(queue)s”") % queue,
                 _("No consumer serves the queue “%(queue)s”, and runs wait in it.") % queue, 600, advice="",
                 ended_at=now - timedelta(minutes=540), open_key=None)  # fmt: skip
    for one, channel, message in (
        (late, team, AlertMessageFactory(channel=team, ended_at=now - timedelta(minutes=12))),
        (late, on_call, AlertMessageFactory(channel=on_call, waiting=True, error="The webhook answered 503: no text")),
        (inbox, team, AlertMessageFactory(channel=team, ended_at=now - timedelta(minutes=95))),
        (often, team, AlertMessageFactory(channel=team, given_up=True, ended_at=now - timedelta(minutes=20))),
        (over, team, AlertMessageFactory(channel=team, ended_at=now - timedelta(minutes=600))),
    ):
        AlertNoticeFactory(alert=one, channel=channel, message=message)
    end = AlertMessageFactory(channel=team, ended_at=now - timedelta(minutes=540))
    AlertNoticeFactory(alert=over, channel=team, message=end, event="end")
    return {"alert": [late], "alertrule": [orders]}
