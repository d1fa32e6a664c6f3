"""Alerts, schedules and channels that get another group: each channel is told of its own group only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduling.alerts.tries import Try
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel, Scheduler, SchedulerExecution
from tests.alerts.scripted import START, Script, run_of
from tests.alerts.support import Clock, alert, send_all, sender, states, told
from tests.factories import ChannelFactory, GroupFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


class Teams:
    """A schedule of group A, a rule that looks at it, and a channel of group A and of group B."""

    def __init__(self, kind: RuleKind = RuleKind.INBOX, **rule: Any) -> None:
        self.a, self.b = GroupFactory(name="a"), GroupFactory(name="b")
        self.script = Script(kind, **rule)
        Channel.objects.all().delete()
        self.of_a, self.of_b = ChannelFactory(group=self.a), ChannelFactory(group=self.b)
        self.script.rule.channels.set([self.of_a, self.of_b])
        self.schedule: Scheduler = SchedulerFactory(group=self.a, description="Import orders")
        self.letters: list[tuple[Channel, str]] = []
        self.clock = Clock()
        self.sender = sender(self.clock, send=self._send)

    def _send(self, one: Try) -> None:
        self.letters.append((one.channel, one.letter.text))

    def narrow(self) -> None:
        """Let the rule look at the schedule only."""
        AlertRule.objects.filter(pk=self.script.rule.pk).update(schedule=self.schedule)

    def fails(self, times: int = 1) -> None:
        """Runs of the schedule fail, in the group that the schedule has now."""
        self.schedule.refresh_from_db()
        for _time in range(times):
            run_of(self.schedule, "failed", START, group=self.schedule.group)

    def is_late(self, late: bool = True) -> None:
        """Let no producer claim the schedule, or let one have claimed it."""
        at = START - timedelta(hours=1) if late else START + timedelta(days=1)
        Scheduler.objects.filter(pk=self.schedule.pk).update(next_run_at=at)

    def move(self) -> None:
        """Give the schedule to group B, which renames it."""
        Scheduler.objects.filter(pk=self.schedule.pk).update(group=self.b, description="Layoffs of May")

    @classmethod
    def moved_before_they_are_told(cls) -> Teams:
        """The schedule is late in its first group, and is in the other one before a message was sent."""
        teams = cls(RuleKind.NOT_STARTED, seconds=300)
        teams.narrow()
        teams.is_late()
        teams.script.look(2)
        teams.move()
        return teams

    def look_and_send(self, times: int = 10) -> None:
        """Evaluate so many times, and send what waits."""
        self.script.look(times)
        self.clock.time = self.script.now
        send_all(self.sender)

    def told(self, channel: Channel) -> str:
        """What this channel has got."""
        return "\n".join(text for to, text in self.letters if to == channel)


def test_a_start_that_waited_is_not_told_to_the_group_that_the_schedule_has_left() -> None:
    teams = Teams.moved_before_they_are_told()
    teams.look_and_send()
    assert Alert.objects.get().group_id == teams.b.pk
    assert teams.told(teams.of_a) == ""
    message = AlertMessage.objects.get(channel=teams.of_a)
    assert (message.state, message.error) == (
        "aside", "The alert and the channel belong to different groups by now."
    )  # fmt: skip
    assert message.ended_at is not None
    assert AlertNotice.objects.get(message=message).event == "start"


@pytest.mark.parametrize("sent", [False, True], ids=["the start waits", "the start is sent"])
def test_a_channel_that_gets_another_group_is_told_nothing_more(sent: bool) -> None:
    teams = Teams(number=0)
    teams.narrow()
    teams.fails()
    teams.script.look(2)
    if sent:
        teams.look_and_send(1)
    before = teams.told(teams.of_a)
    assert bool(before) is sent
    Channel.objects.filter(pk=teams.of_a.pk).update(group=teams.b)
    send_all(teams.sender)
    SchedulerExecution.objects.all().delete()
    teams.look_and_send()
    assert teams.told(teams.of_a) == before
    assert states() == ["sent", "aside"] if sent else ["aside"]
    assert set(AlertNotice.objects.values_list("event", flat=True)) == ({"start", "end"} if sent else {"start"})


def test_what_a_channel_may_be_told_is_sent_without_the_rest() -> None:
    own, other = GroupFactory(), GroupFactory()
    team, letters, clock = ChannelFactory(group=own), list[str](), Clock()
    by = sender(clock, send=lambda one: letters.append(one.letter.text))
    told(team, alert(1, group=own), alert(2), alert(3, group=other), alert(4, group=other))
    send_all(by)
    assert [("subject 1" in text, "subject 2" in text, "subject 3" in text) for text in letters] == [
        (True, True, False)
    ]
    assert states() == ["sent", "aside"]
    assert AlertNotice.objects.filter(message__state="aside").count() == 2
    send_all(by)
    assert states() == ["sent", "aside"]


def shown() -> tuple[str, int | None, int | None]:
    """What the only alert shows: its subject, its execution and its group."""
    row = Alert.objects.get()
    return row.subject, row.execution, row.group_id


@pytest.mark.parametrize(
    ("kind", "state"), [(RuleKind.NOT_STARTED, "queued"), (RuleKind.SKIPPED, "skipped")], ids=["not started", "skipped"]
)
def test_an_alert_about_a_run_names_its_target_after_the_schedule_has_moved(kind: RuleKind, state: str) -> None:
    teams = Teams(kind)
    run = run_of(
        teams.schedule, state, teams.script.ago(hours=1), group=teams.a, reason="Of team A.", target_name="importer"
    )
    teams.move()
    teams.look_and_send(2)
    assert shown() == ("importer", run.pk, teams.a.pk)
    assert "Of team A." in teams.told(teams.of_a)
    assert teams.told(teams.of_b) == ""


def test_a_run_without_a_group_shows_no_name_of_a_group() -> None:
    teams = Teams(RuleKind.NOT_STARTED)
    run = run_of(teams.schedule, "queued", teams.script.ago(hours=1), target_name="importer")
    teams.look_and_send(2)
    assert shown() == ("importer", run.pk, None)


def test_failures_in_a_row_are_those_of_the_schedule_in_its_present_group() -> None:
    teams = Teams(RuleKind.FAILED_IN_A_ROW, number=3)
    teams.fails(3)
    teams.move()
    teams.look_and_send(2)
    assert shown() == ("Layoffs of May", None, teams.b.pk)
    assert teams.told(teams.of_a) == ""
    assert "Layoffs of May" in teams.told(teams.of_b)


def test_a_deadline_is_that_of_the_schedule_in_its_present_group() -> None:
    teams = Teams(RuleKind.NOT_FINISHED, at="11:00", schedule=SchedulerFactory())
    teams.narrow()
    Scheduler.objects.filter(pk=teams.schedule.pk).update(schedule="0 10 * * *", timezone="UTC", planned_at=None)
    run = run_of(teams.schedule, "failed", START.replace(hour=10), group=teams.a)
    teams.script.look(1)
    assert shown() == ("Import orders", run.pk, teams.a.pk)
    teams.move()
    teams.look_and_send()
    assert shown() == ("Layoffs of May", None, teams.b.pk)
    assert teams.told(teams.of_a) == ""


def test_the_channel_of_the_new_group_is_told_once() -> None:
    teams = Teams(RuleKind.NOT_STARTED, seconds=300)
    teams.narrow()
    teams.is_late()
    teams.look_and_send(2)
    Alert.objects.update(acknowledged_at=START, acknowledged_by="anna", muted_until=teams.script.ago(days=-1))
    Alert.objects.update(muted_by="anna", mute_reason="for the salaries")
    assert teams.told(teams.of_b) == ""
    teams.move()
    for _time in range(3):
        teams.look_and_send()
    assert [(to == teams.of_b, "Layoffs" in text) for to, text in teams.letters] == [(False, False), (True, True)]
    row = Alert.objects.get()
    assert (row.group_id, row.acknowledged_by, row.muted_by, row.mute_reason) == (teams.b.pk, "", "", "")
    assert row.acknowledged_at is row.muted_until is None
    teams.is_late(False)
    teams.look_and_send()
    assert [to for to, _text in teams.letters] == [teams.of_a, teams.of_b, teams.of_b]


def test_a_schedule_that_comes_back_to_its_group_is_told_if_it_was_not() -> None:
    teams = Teams.moved_before_they_are_told()
    teams.look_and_send()
    assert [to for to, _text in teams.letters] == [teams.of_b]
    Scheduler.objects.filter(pk=teams.schedule.pk).update(group=teams.a)
    teams.look_and_send()
    teams.look_and_send()
    assert [to for to, _text in teams.letters] == [teams.of_b, teams.of_a]


def test_an_open_alert_has_the_severity_of_its_rule() -> None:
    script = Script(RuleKind.INBOX, number=0, severity="info")
    urgent = ChannelFactory(tells_by_default=True, least_severity="critical")
    run_of(None, "failed", START)
    script.look(3)
    before = Alert.objects.get()
    assert list(AlertNotice.objects.values_list("channel", flat=True)) == [script.channel.pk]
    AlertRule.objects.filter(pk=script.rule.pk).update(severity="critical")
    script.look(1)
    notices = AlertNotice.objects.order_by("pk").values_list("channel", "event")
    assert list(notices) == [(script.channel.pk, "start"), (urgent.pk, "start")]
    row = Alert.objects.get()
    assert (row.pk, row.severity, row.started_at) == (before.pk, "critical", before.started_at)
    assert row.told_at == script.now
    script.stays_silent()
    AlertRule.objects.filter(pk=script.rule.pk).update(severity="info")
    script.stays_silent()
    assert Alert.objects.get().severity == "info"


def test_a_rule_about_the_inbox_of_a_schedule_counts_each_group_on_its_own() -> None:
    teams = Teams(RuleKind.INBOX, number=1)
    teams.narrow()
    teams.fails(3)
    teams.look_and_send()
    teams.move()
    teams.look_and_send()
    assert teams.told(teams.of_b) == "", "the failures of A are not told to B"
    teams.fails(2)
    teams.look_and_send()
    assert [(alert.group, alert.subject, alert.seen) for alert in Alert.objects.order_by("pk")] == [
        (teams.a, "failed inbox", "Failures in the inbox: 3. The limit is 1."),
        (teams.b, "Layoffs of May", "Failures in the inbox: 2. The limit is 1."),
    ]
    assert "Layoffs" not in teams.told(teams.of_a)


def test_a_rule_of_a_group_finds_nothing_in_the_inbox_of_a_schedule_that_has_left_it() -> None:
    teams = Teams(RuleKind.INBOX, number=1)
    teams.narrow()
    AlertRule.objects.filter(pk=teams.script.rule.pk).update(group=teams.a)
    teams.fails(3)
    teams.move()
    teams.fails(3)
    teams.script.stays_silent()


def test_a_run_that_waits_in_the_former_group_is_told_although_the_schedule_is_late_in_its_new_group() -> None:
    teams = Teams(RuleKind.NOT_STARTED, seconds=300)
    run_of(teams.schedule, "queued", teams.script.ago(hours=2), group=teams.a, trigger="cron")
    Scheduler.objects.filter(pk=teams.schedule.pk).update(group=teams.b, next_run_at=teams.script.ago(hours=1))
    teams.script.look()
    notices = AlertNotice.objects.values_list("alert__group", "channel__group", "event")
    assert set(notices) == {(teams.a.pk, teams.a.pk, "start"), (teams.b.pk, teams.b.pk, "start")}
