"""One process at a time evaluates, and another one goes on at once. A break of the database blames no process."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from scheduling.alerts import evaluator as module
from scheduling.alerts.brokers import BrokerWatch
from scheduling.alerts.complaint import AGAIN_SECONDS, Complaint
from scheduling.alerts.evaluator import Evaluator
from scheduling.alerts.tries import Try
from scheduling.core.alert_rules import RuleKind
from scheduling.core.lifecycle import silent_after
from scheduling.models import Alert, AlertRule, Process
from scheduling.models.alert_watch import AlertWatch
from tests.alerts.support import alert, channel, only_rule, states, told
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)  # an evaluator closes its connection after an error


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the evaluators count, in one field."""
    passed = [1_000.0]
    monkeypatch.setattr(module, "elapsed_seconds", lambda: passed[0])
    return passed


def settle(one: Evaluator, seconds: list[float]) -> None:
    """Let an evaluator see that the database answers for long enough."""
    one.turn()
    while one.settles_in:
        seconds[0] += min(one.settles_in, 5.0)
        one.turn()


def silent(kind: str) -> None:
    """A process whose last heartbeat is old."""
    long_ago = timezone.now() - timedelta(hours=1)
    Process.objects.create(
        container_id=f"{kind}-1", kind=kind, host="h", pid=1, started_at=long_ago, heartbeat_at=long_ago
    )


def test_one_evaluates_and_the_next_goes_on_at_once(seconds: list[float]) -> None:
    first, second = Evaluator(name="first"), Evaluator(name="second")
    assert first.turn()
    assert not second.turn()
    assert not second.problem
    assert first.turn()
    first.close()
    assert second.turn()
    assert not first.turn()


def test_a_process_that_stops_records_what_it_has_sent() -> None:
    """Otherwise the next process would send it once more."""
    told(channel("json://chat.example.com/"), alert(1))
    begun, goes_on = Event(), Event()

    def send(_try: Try) -> None:
        begun.set()
        goes_on.wait(5)

    one = Evaluator(send=send)
    one.turn()
    assert begun.wait(5)
    Timer(0.2, goes_on.set).start()
    one.close()
    assert states() == ["sent"]


def test_a_killed_one_is_followed_after_its_lease(seconds: list[float]) -> None:
    first, second = Evaluator(name="first"), Evaluator(name="second")
    assert first.turn()
    assert not second.turn()
    AlertWatch.objects.update(until=int(timezone.now().timestamp()) - 5)
    assert second.turn()


@pytest.mark.parametrize("until", [2**62, 0])
def test_a_hostile_lease(until: int, seconds: list[float]) -> None:
    AlertWatch.objects.update_or_create(pk=1, defaults={"holder": "x" * 128, "until": until})
    assert Evaluator(name="own").turn()


def test_processes_have_time_to_report_after_a_break(seconds: list[float]) -> None:
    """While the database is away, no heartbeat is recorded, so all processes look dead when it is back."""
    only_rule(RuleKind.NO_PRODUCER)
    silent("producer")
    one = Evaluator(name="own")
    assert one.turn()
    assert not Alert.objects.exists(), "it has just started, and knows nothing"
    settle(one, seconds)
    assert Alert.objects.count() == 1
    Alert.objects.all().delete()
    with connection.execute_wrapper(refuse):
        assert not one.turn()
    seconds[0] += 60
    assert one.turn()
    assert not Alert.objects.exists(), "the database was away"
    settle(one, seconds)
    assert Alert.objects.count() == 1


def test_a_machine_that_slept_has_time_too(seconds: list[float]) -> None:
    only_rule(RuleKind.NO_PRODUCER)
    silent("producer")
    Process.objects.update(heartbeat_at=timezone.now())
    one = Evaluator(name="own")
    settle(one, seconds)
    Process.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    seconds[0] += 3_600
    one.turn()
    assert not Alert.objects.exists()
    seconds[0] += silent_after(15).total_seconds()
    one.turn()
    assert Alert.objects.count() == 1


def refuse(*_arguments: Any) -> Any:
    """Fail as a connection to a server that is gone."""
    raise OperationalError("gone") from gone()


def gone() -> Exception:
    error = Exception("gone")
    if connection.vendor == "sqlite":
        error.sqlite_errorcode = 14  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(("code", "is_away"), [(5, False), (6, False), (14, True)])
def test_a_busy_file_is_not_away(code: int, is_away: bool, seconds: list[float]) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has one writer at a time")
    only_rule(RuleKind.DATABASE_AWAY)
    one = Evaluator(name="own")
    settle(one, seconds)

    def busy(*_arguments: Any) -> Any:
        error = Exception("busy")
        error.sqlite_errorcode = code  # type: ignore[attr-defined]
        raise OperationalError("busy") from error

    with connection.execute_wrapper(busy):
        assert not one.turn()
    assert one.hurries is is_away


def test_an_error_ends_the_turn_only(seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    one = Evaluator(name="own")
    settle(one, seconds)

    def fail(_look: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(module, "evaluate", fail)
    assert not one.turn()
    assert "a defect" in one.problem
    monkeypatch.undo()
    assert one.turn()
    assert not one.problem


def test_a_held_process_looks_at_the_hold_only(
    seconds: list[float], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CRON_DEPLOYMENT = "production"
    one = Evaluator(name="own")
    one.turn()
    settings.CRON_DEPLOYMENT = "staging"
    looks: list[str] = []
    monkeypatch.setattr(module, "evaluate", lambda look: looks.append(look.hold))
    settle(one, seconds)
    assert looks
    assert "production" in looks[-1]


def test_an_outage_of_an_hour_is_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    complaint = Complaint(lambda: now[0])
    error = OperationalError("gone")
    error.__cause__ = gone()
    with caplog.at_level(logging.INFO):
        for _turn in range(1_800):
            complaint.say(error)
            now[0] += 2
        for _turn in range(10):
            complaint.over()
            now[0] += 10
    assert len(caplog.messages) == 3_600 // AGAIN_SECONDS + 1


def test_a_trouble_that_comes_and_goes_is_one(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    complaint = Complaint(lambda: now[0])
    error = OperationalError("gone")
    error.__cause__ = gone()
    with caplog.at_level(logging.INFO):
        for turn in range(40):
            if turn % 2:
                complaint.over()
            else:
                complaint.say(error)
            now[0] += 10
    assert len(caplog.messages) == 1


def test_a_defect_of_one_step_stops_no_message(seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    subjects: list[str] = []
    one = Evaluator(name="one", send=lambda given: subjects.append(given.letter.subject))
    told(channel("json://host/"), alert())
    monkeypatch.setattr(one._outage, "remember", lambda: [][0])
    assert not one.turn()
    assert one.problem == "The alerts cannot be evaluated: list index out of range"
    wait_for(lambda: bool(subjects), "the message is sent all the same")
    one.close()


def test_after_the_clock_was_set_back_no_process_is_blamed_until_it_can_have_beaten(
    seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    only_rule(RuleKind.NO_PRODUCER)
    one = Evaluator(name="one")
    settle(one, seconds)
    real = one._clock.now
    monkeypatch.setattr(one._clock, "now", lambda: real() - timedelta(hours=2))
    one.turn()
    assert one.settles_in > 0
    one.close()


@pytest.mark.parametrize(("span", "says"), [(30.0, False), (60.0, True)])
def test_one_call_cannot_wait_for_a_broker_for_longer_than_it_looks(
    span: float, says: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = only_rule(RuleKind.BROKER_AWAY)
    AlertRule.objects.filter(pk=rule.pk).update(seconds=span)
    away = BrokerWatch("amqp://broker", elapsed=lambda: 100.0)
    away.assume_away(module.BROKER_SECONDS)
    monkeypatch.setattr(away, "look", lambda: None)
    monkeypatch.setattr(module, "watch_of", lambda _url: away)
    monkeypatch.setattr(Evaluator, "settles_in", 0.0)
    call_command("evaluate_alerts")
    assert ("so it cannot evaluate rules that wait for longer." in capsys.readouterr().out) is says
    assert Alert.objects.filter(rule=rule).exists() is not says


def test_the_line_of_the_crontab_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cron mails each line that a command prints."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    (line,) = re.findall(r"^\* \* \* \* \* (.*evaluate_alerts.*)$", page, re.MULTILINE)
    begin, _python, arguments = line.partition(".venv/bin/python manage.py ")
    assert begin == "cd /srv/site && "
    monkeypatch.setattr(Evaluator, "settles_in", 0.0)
    name, option, value = arguments.split()
    assert option == "-v"
    call_command(name)
    assert capsys.readouterr().out
    call_command(name, verbosity=int(value))
    assert capsys.readouterr() == ("", "")
