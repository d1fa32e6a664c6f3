"""A monitor that hangs, refuses or is away delays no run. What was not delivered is on record, and told in order."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from threading import Timer
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone as clock

from scheduling.models import Ping, Scheduler, SchedulerExecution
from scheduling.pings import sender as module
from scheduling.pings.bounded import Request, send_all
from scheduling.pings.claims import CLAIM, claim
from scheduling.pings.rows import note_other_ends
from scheduling.pings.sender import DUE, UNENDED, Sender, questions
from scheduling.processes.question import ask_at_once
from scheduling.testing import drain
from tests.factories import ManualExecutionFactory, PingFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks
from tests.pings.monitor import running
from tests.support import lax_sql

pytestmark = pytest.mark.django_db


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a call end after a tenth of a second."""
    real = module.send_all
    monkeypatch.setattr(module, "send_all", lambda requests: real(requests, 0.1))
    return


def pinged(healthchecks: Healthchecks, **columns: Any) -> tuple[Scheduler, uuid.UUID]:
    check = uuid.uuid4()
    return SchedulerFactory(rare=True, ping_url=healthchecks.url(check), **columns), check


def run(row: Scheduler, handler: str = "") -> SchedulerExecution:
    """Run the schedule once."""
    execution = ManualExecutionFactory(scheduler=row)
    drain(raise_errors=False)
    execution.refresh_from_db()
    return execution


def send(sender: Sender | None = None, after: timedelta = timedelta(0)) -> None:
    """Send all that is due after this time."""
    sender = sender or Sender()
    while sender.send_due(clock.now() + after):
        pass


def rows() -> list[tuple[str, str, str]]:
    return list(Ping.objects.order_by("pk").values_list("event", "state", "error"))


def test_a_run_does_not_wait_for_its_monitor(healthchecks: Healthchecks) -> None:
    healthchecks.hangs.clear()
    row, _check = pinged(healthchecks)
    assert run(row).state == "succeeded"
    assert [state for _event, state, _error in rows()] == ["waiting", "waiting"]
    assert healthchecks.calls == []


def test_a_monitor_that_hangs_is_given_up_and_tried_again(healthchecks: Healthchecks, short: None) -> None:
    healthchecks.hangs.clear()
    row, check = pinged(healthchecks)
    run(row)
    sender = Sender()
    sender.send_due(clock.now())
    start, end = Ping.objects.order_by("pk")
    assert (start.state, start.tries, start.host) == ("dropped", 1, healthchecks.host)
    assert "did not answer" in start.error
    assert "the end of the run is told instead" in start.error
    healthchecks.hangs.set()
    sender.send_due(clock.now())  # the host rests
    assert Ping.objects.get(pk=end.pk).tries == 0
    send(Sender())
    send(Sender(), after=timedelta(seconds=16))
    assert Ping.objects.get(pk=end.pk).state == "sent"
    assert healthchecks.check(check).log[-1][0] == "success"


def test_a_monitor_that_answers_byte_by_byte_is_given_up(healthchecks: Healthchecks) -> None:
    healthchecks.drips.clear()
    stop = Timer(20, healthchecks.drips.set)
    stop.start()
    request = Request("GET", healthchecks.url(uuid.uuid4()), {})
    (ending,) = send_all([request], 0.5)
    assert (ending.later, ending.silent) == (True, True)
    assert not healthchecks.drips.is_set(), "the call was given up while the server was still answering"
    stop.cancel()


def test_a_monitor_that_answers_500_is_tried_again_with_growing_waits(healthchecks: Healthchecks) -> None:
    healthchecks.status = 503
    row, check = pinged(healthchecks)
    run(row)
    waits = []
    now = clock.now()
    for _try in range(4):
        end = Ping.objects.order_by("-pk")[0]
        send(after=max(timedelta(0), end.at - now))
        end = Ping.objects.order_by("-pk")[0]
        waits.append(round((end.at - clock.now()).total_seconds()))
    assert waits == [15, 30, 60, 120]
    assert end.error.startswith("The server answered 503")
    healthchecks.status = 200
    send(after=timedelta(minutes=3))
    assert Ping.objects.get(pk=end.pk).state == "sent"
    assert healthchecks.check(check).status == "up"


def test_a_monitor_that_is_away_for_a_day_is_given_up_with_the_reason(free_port: int, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = "127.0.0.1"
    row = SchedulerFactory(rare=True, ping_url=f"http://127.0.0.1:{free_port}/ping/x")
    run(row)
    Ping.objects.update(created_at=clock.now() - timedelta(hours=25))
    send()
    ((_event, _state, first), (_event, state, error)) = rows()
    assert "cannot be reached" in first
    assert state == "dropped"
    assert error == "The server does not answer. It is not tried again: it was tried for a day."


@pytest.mark.parametrize("status", [404, 409, 410])
def test_an_answer_that_is_final_is_not_tried_again(healthchecks: Healthchecks, status: int) -> None:
    healthchecks.status, healthchecks.text = status, b"no such check"
    row, _check = pinged(healthchecks)
    assert run(row).state == "succeeded"
    send()
    assert [(state, error) for _event, state, error in rows()] == [
        ("dropped", f"The server answered {status}: no such check")
    ] * 2


def test_no_log_line_has_the_address_of_a_monitor(
    healthchecks: Healthchecks, caplog: pytest.LogCaptureFixture, free_port: int, settings: Any
) -> None:
    settings.CRON_INTERNAL_HOSTS = "127.0.0.1"
    for logger in (None, "urllib3"):
        caplog.set_level(1, logger)
    url = healthchecks.url(check := uuid.uuid4())
    away = f"http://127.0.0.1:{free_port}/{check}"
    ends = send_all([Request("POST", f"{url}/fail", {}), Request("POST", away, {})])
    assert ends[0].reason == ""
    assert ends[1].silent
    logging.getLogger("urllib3.connectionpool").debug("a line of the project itself")
    assert str(check) not in caplog.text
    assert str(free_port) not in caplog.text
    assert "a line of the project itself" in caplog.text


def test_a_redirect_to_an_internal_address_is_not_followed(healthchecks: Healthchecks) -> None:
    inside = Healthchecks()
    with running(inside):
        healthchecks.status, healthchecks.location = 302, inside.url(uuid.uuid4())
        row, _check = pinged(healthchecks)
        run(row)
        send()
        assert inside.calls == []
    assert all(state == "dropped" and "Redirects are not followed" in error for _event, state, error in rows())


def test_an_internal_address_is_not_called(healthchecks: Healthchecks, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = ""
    row, _check = pinged(healthchecks)
    run(row)
    send()
    assert healthchecks.calls == []
    assert all(state == "dropped" and "CRON_INTERNAL_HOSTS" in error for _event, state, error in rows())


def test_no_reason_repeats_the_url(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks)
    healthchecks.status, healthchecks.text = 404, f"unknown: /ping/{check}/start".encode()
    run(row)
    send()
    assert all(str(check) not in error for _event, _state, error in rows())


def test_the_url_may_stand_in_a_variable(healthchecks: Healthchecks, monkeypatch: pytest.MonkeyPatch) -> None:
    check = uuid.uuid4()
    row = SchedulerFactory(rare=True, ping_url="${CRON_PING_NIGHTLY}")
    run(row)
    send()
    assert "CRON_PING_NIGHTLY is not set" in rows()[1][2]
    monkeypatch.setenv("CRON_PING_NIGHTLY", healthchecks.url(check))
    send(after=timedelta(minutes=1))
    assert healthchecks.check(check).status == "up"


@pytest.mark.parametrize("text", ["${SECRET_KEY}", "${CRON_PING_}", "x${CRON_PING_A}"])
def test_no_other_variable_is_read(text: str, monkeypatch: pytest.MonkeyPatch, healthchecks: Healthchecks) -> None:
    monkeypatch.setenv("SECRET_KEY", healthchecks.url(uuid.uuid4()))
    run(SchedulerFactory(rare=True, ping_url=text))
    send()
    assert healthchecks.calls == []
    assert all(state == "waiting" or "cannot be read" in error for _event, state, error in rows())


def test_a_schedule_that_is_deleted_is_no_longer_told(healthchecks: Healthchecks) -> None:
    row, _check = pinged(healthchecks)
    run(row)
    row.delete()
    send()
    assert healthchecks.calls == []
    assert {error for _event, _state, error in rows()} == {"The schedule is deleted, or has no ping URL any more."}


def test_a_failure_that_is_told_late_does_not_hide_a_later_success(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks, handler="tests.fail", max_retries=0)
    healthchecks.status = 503
    run(row)
    send()
    Scheduler.objects.filter(pk=row.pk).update(worker=SchedulerFactory(rare=True).worker)
    run(Scheduler.objects.get(pk=row.pk))
    healthchecks.status = 200
    healthchecks.calls.clear()
    send()  # the failure waits for its next try, and the later pings wait for it
    assert healthchecks.calls == []
    send(after=timedelta(minutes=1))
    found = healthchecks.check(check)
    assert [event for event, _rid in found.log] == ["fail", "start", "success"]
    assert found.status == "up"


def test_a_monitor_that_was_away_hears_no_old_runs(healthchecks: Healthchecks) -> None:
    healthchecks.status = 503
    row, _check = pinged(healthchecks)
    run(row)
    run(row)
    Ping.objects.update(created_at=clock.now() - timedelta(hours=2))
    send()
    ends = Ping.objects.filter(event="success").order_by("pk")
    assert [ping.state for ping in ends] == ["dropped", "waiting"]
    assert "a later run has ended meanwhile" in ends[0].error


def test_one_hanging_monitor_does_not_delay_the_others(healthchecks: Healthchecks, settings: Any, short: None) -> None:
    hanging = Healthchecks()
    with running(hanging):
        settings.CRON_INTERNAL_HOSTS = f"{settings.CRON_INTERNAL_HOSTS},{hanging.host}"
        hanging.hangs.clear()
        for _ in range(20):
            run(pinged(hanging)[0])
        row, check = pinged(healthchecks)
        run(row)
        sender = Sender()
        turns = 0
        while healthchecks.check(check).status != "up":
            if not sender.send_due(clock.now()):
                time.sleep(0.05)  # on a loaded machine, its call took too long, and is repeated
            turns += 1
            assert turns < 200
        tried = Ping.objects.filter(host=hanging.host).count()
        assert tried == module.AT_ONCE, "the others of this host rest without a call"
    assert all(row.state == "succeeded" for row in SchedulerExecution.objects.all())


def test_a_claimed_ping_is_sent_by_one_process(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks)
    run(row)
    now = clock.now()
    mine = list(Ping.objects.due(now))
    assert [claim(ping, now) for ping in mine] == [True]
    theirs = Ping.objects.get(pk=mine[0].pk)
    theirs.tries -= 1  # as it was read before the claim
    assert not claim(theirs, now)
    send()
    assert healthchecks.calls == []
    # The process has died. The start may have arrived, and its end waits.
    send(after=CLAIM + timedelta(seconds=1))
    assert [event for event, _rid in healthchecks.check(check).log] == ["success"]
    assert "it is not known whether it arrived" in rows()[0][2]


def test_an_end_whose_sender_died_is_sent_once_more(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks)
    run(row)
    sender = Sender()
    assert sender.send_due(clock.now())  # the start
    (end,) = Ping.objects.due(clock.now())
    assert claim(end, clock.now())
    send(after=CLAIM + timedelta(seconds=1))
    assert [event for event, _rid in healthchecks.check(check).log] == ["start", "success"]
    assert Ping.objects.get(pk=end.pk).tries == 2


def test_a_bad_row_does_not_stop_the_next_one(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks)
    execution = run(row)
    bad = PingFactory(execution=execution, waiting=True, kind="nonsense", event="nonsense")
    bad_url, _check = pinged(healthchecks)
    run(bad_url)
    Scheduler.objects.filter(pk=bad_url.pk).update(ping_url="http://[::1")
    send()
    assert healthchecks.check(check).status == "up"
    assert Ping.objects.get(pk=bad.pk).state == "dropped"


HOSTILE = [
    ("tries", "many"), ("at", "0000-00-00 00:00:00"), ("created_at", "yesterday"), ("begun_at", b"\x00"),
    ("run_id", "no uuid"), ("attempt", -1), ("event", "explode"), ("kind", 7), ("sending", "perhaps"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), HOSTILE)
def test_a_row_that_plain_sql_has_spoilt_holds_up_no_other(
    healthchecks: Healthchecks, column: str, value: object
) -> None:
    spoilt, _check = pinged(healthchecks)
    run(spoilt)
    first = Ping.objects.order_by("pk")[0].pk
    row, check = pinged(healthchecks)
    run(row)
    with lax_sql(), connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute(f"UPDATE scheduling_ping SET {column} = %s WHERE id = %s", [value, first])
        except DatabaseError:
            pytest.skip("this database stores no such value")
    send()
    note_other_ends(clock.now())
    assert healthchecks.check(check).status == "up"
    assert Ping.objects.filter(pk=first).exclude(state="waiting").exists() or column == "at"


def test_a_heartbeat_finds_what_is_due_without_a_statement_of_its_own(healthchecks: Healthchecks) -> None:
    assert ask_at_once(questions(clock.now())).found == set()
    row, _check = pinged(healthchecks)
    execution = ManualExecutionFactory(scheduler=row)
    drain()
    assert ask_at_once(questions(clock.now())).found == {DUE}
    send()
    assert ask_at_once(questions(clock.now())).found == set()
    Ping.objects.filter(event="start").update(open_execution=execution.pk)
    assert ask_at_once(questions(clock.now())).found == {UNENDED}


def test_indexes_find_what_a_heartbeat_asks_for() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the plan of another database depends on its statistics")
    for rows in questions(clock.now()).values():
        plan = rows.order_by().values("pk").explain()
        assert "SCAN" not in plan, plan


@pytest.mark.django_db(transaction=True)
def test_a_process_that_ends_sends_what_is_due(healthchecks: Healthchecks) -> None:
    row, check = pinged(healthchecks)
    run(row)
    sender = Sender()
    sender.switch_on()
    sender.ring()
    sender.stop(30)
    assert sender._thread is not None
    assert not sender._thread.is_alive()
    assert [event for event, _rid in healthchecks.check(check).log] == ["start", "success"]


def test_a_held_process_tells_no_monitor(healthchecks: Healthchecks) -> None:
    sender = Sender()
    sender.switch_on()
    sender.told({DUE}, clock.now, held=True)
    sender.ring()
    assert sender._thread is None
    sender.stop()


def test_nothing_is_sent_where_sending_is_not_switched_on() -> None:
    sender = Sender()
    sender.ring()
    assert sender._thread is None
