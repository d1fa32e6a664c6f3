"""The rules about processes, breakers, disks, clocks and holds."""

from __future__ import annotations

import shutil
from collections import namedtuple
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import translation

from scheduling.alerts import disks
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, Breaker, Process, SchedulerExecution
from tests.alerts.scripted import START, Script, run_of
from tests.factories import BreakerFactory, ProcessFactory
from tests.support import lax_sql

pytestmark = pytest.mark.django_db


def alive(script: Script, **columns: Any) -> Process:
    """A process that stays alive until the test says otherwise: it beats before each look."""
    row: Process = ProcessFactory(heartbeat_at=script.now, **columns)
    script.beating.add(row.pk)
    return row


def test_no_producer() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    producer = alive(script, producer=True)
    script.stays_silent()
    script.beating.clear()
    Process.objects.filter(pk=producer.pk).update(heartbeat_at=script.ago(minutes=1))
    script.begins()
    script.beating.add(producer.pk)
    script.ends()


def test_a_heartbeat_from_before_the_clock_was_set_back_hides_no_dead_producer() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    ProcessFactory(producer=True, heartbeat_at=START + timedelta(hours=2))
    script.begins()


def test_an_unreadable_heartbeat_hides_no_dead_producer() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    producer = ProcessFactory(producer=True, heartbeat_at=START)
    unreadable = {"sqlite": "2026-11-25 12:61:61", "postgresql": "infinity"}.get(connection.vendor, "0000-00-00")
    with lax_sql(), connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_process SET heartbeat_at = %s WHERE id = %s", [unreadable, producer.pk])
    script.begins()


def test_a_restart_is_silent() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    producer = alive(script, producer=True)
    script.look(1)
    Process.objects.filter(pk=producer.pk).update(stopped_at=script.now, heartbeat_at=script.now)
    script.look(2)  # it starts again after 20 s
    assert not script.told
    again = alive(script, producer=True)
    script.stays_silent()
    Process.objects.filter(pk=again.pk).update(stopped_at=script.now, heartbeat_at=script.now)
    script.look(3)
    assert not script.told
    assert script.begins().started_at == script.ago(seconds=90)


def test_a_queue_whose_only_consumer_is_restarted_is_silent() -> None:
    script = Script(RuleKind.NO_CONSUMER)
    alive(script)
    consumer = alive(script, info={"queue": "mail"})
    run_of(None, "queued", START, queue="mail")
    script.stays_silent()
    Process.objects.filter(pk=consumer.pk).update(stopped_at=script.now, heartbeat_at=script.now)
    script.look(3)
    assert not script.told
    assert "mail" in script.begins().subject


def test_no_consumer_of_a_queue() -> None:
    script = Script(RuleKind.NO_CONSUMER)
    consumer = alive(script)
    script.stays_silent()
    run_of(None, "queued", START, queue="mail.high")
    alert = script.begins()
    assert "mail" in alert.subject
    Process.objects.filter(pk=consumer.pk).update(info={"queue": "main,mail"})
    script.ends()
    SchedulerExecution.objects.all().delete()
    Process.objects.filter(pk=consumer.pk).update(stopped_at=START)
    assert "No consumer is alive" in script.begins().seen


def test_breaker() -> None:
    script = Script(RuleKind.BREAKER)
    breaker = BreakerFactory(closed=True)
    script.stays_silent()
    Breaker.objects.filter(pk=breaker.pk).update(state="open", reason="8 of 10 runs have failed.", error="secret row")
    alert = script.begins()
    assert "8 of 10" in alert.seen
    assert "secret row" not in alert.seen
    Breaker.objects.filter(pk=breaker.pk).update(state="half_open")
    script.stays_silent()
    Breaker.objects.filter(pk=breaker.pk).update(state="closed")
    script.ends()


def test_clock() -> None:
    script = Script(RuleKind.CLOCK)
    process = alive(script, info={"clock_ahead": 0.1})
    script.stays_silent()
    Process.objects.filter(pk=process.pk).update(info={"clock_ahead": -400.0})
    assert "behind the database" in script.begins().seen
    Process.objects.filter(pk=process.pk).update(info={"clock_ahead": 0})
    script.ends()


def test_disk(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = Script(RuleKind.DISK)
    settings.DATA_DIR, settings.MEDIA_ROOT = tmp_path, tmp_path / "nowhere"
    usage = namedtuple("usage", "total free")
    free = {"percent": 10}

    def asked(path: Path) -> Any:
        if path.name == "nowhere":
            raise FileNotFoundError(path)
        return usage(100, free["percent"])

    monkeypatch.setattr(shutil, "disk_usage", asked)
    script.stays_silent()
    free["percent"] = 9
    script.memory.clear()
    alert = script.begins()
    assert "DATA_DIR" in alert.seen
    free["percent"] = 20
    script.memory.clear()
    script.look(seconds=40)  # it must be gone for five minutes
    assert script.told == {"start": 1, "end": 1}


def test_the_disk_of_another_host_stays_told_while_a_process_on_it_is_alive(settings: Any) -> None:
    script = Script(RuleKind.DISK)
    settings.DATA_DIR = settings.MEDIA_ROOT = ""
    other = alive(script, host="other")
    Alert.objects.create(
        rule=script.rule, rule_name="x", kind="disk", severity="critical", key="disk DATA_DIR of other",
        open_key="1", subject="s", seen="s", started_at=START, seen_at=START,
    )  # fmt: skip
    script.look(seconds=40)
    assert Alert.objects.get().ended_at is None
    Process.objects.filter(pk=other.pk).update(stopped_at=START)
    script.look(seconds=40)
    assert Alert.objects.get().ended_at is not None


def test_a_disk_that_hangs_is_not_waited_for() -> None:
    import threading

    release = threading.Event()

    def hang() -> dict[str, float]:
        release.wait(20)
        return {"DATA_DIR": 0.0}

    try:
        assert disks._asked(hang, 0.01) == {}
        assert disks._asked(dict, 5) == {}  # it still hangs, so nothing is asked
    finally:
        release.set()


class Broker:
    """A broker that is away. It notes the language in which it is asked."""

    reason = "connection refused"
    away_seconds = 0.0

    def __init__(self) -> None:
        self.languages = set[str]()

    def __getattribute__(self, name: str) -> Any:
        if name == "away_seconds":
            self.languages.add(translation.get_language())
        return super().__getattribute__(name)


def test_broker_away_and_the_language_of_the_site(settings: Any) -> None:
    script, broker = Script(RuleKind.BROKER_AWAY), Broker()
    script.options["broker"] = broker
    broker.away_seconds = 29
    script.stays_silent()
    broker.away_seconds = 30
    settings.LANGUAGE_CODE = "de"
    broker.languages.clear()
    with translation.override("fr"):
        script.begins()
    assert broker.languages == {"de"}
    assert "connection refused" in Alert.objects.get().seen
    broker.away_seconds = 0
    script.ends()


def test_hold() -> None:
    script = Script(RuleKind.HOLD)
    script.stays_silent()
    script.options["hold"] = "The database is a copy."
    assert "The database is a copy." in script.begins().seen
    script.options["hold"] = ""
    script.ends()
    process = alive(script, info={"held": "Another database."})
    assert "Another database." in script.begins().seen
    Process.objects.filter(pk=process.pk).update(info={})
    script.ends()


def test_while_this_process_holds_all_other_alerts_stay_as_they_are() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    script.options["hold"] = "The database is a copy."
    script.stays_silent()
    assert not Alert.objects.exists()
    script.options["hold"] = ""
    script.begins()
    alive(script, producer=True)
    script.options["hold"] = "The database is a copy."
    script.rule.enabled = False
    script.rule.save()
    script.stays_silent()
    script.options["hold"] = ""
    script.ends()


def test_an_alert_that_waited_for_a_channel_is_not_told_while_this_process_holds() -> None:
    script = Script(RuleKind.NO_PRODUCER)
    script.channel.tells_by_default = False
    script.channel.save()
    script.look(1)
    script.channel.tells_by_default = True
    script.channel.save()
    script.options["hold"] = "The database is a copy."
    script.stays_silent()
    script.options["hold"] = ""
    script.begins()
