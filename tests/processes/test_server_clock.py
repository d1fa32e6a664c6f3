"""Tests of the database server's time in one process."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.core.clock_skew import Skew, skew
from scheduling.processes.server_clock import ServerClock
from tests.support import NOON

SECOND = timedelta(seconds=1)


class Host:
    """A host with a clock that can be set, and a server that answers NOON plus the elapsed seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.elapsed = 0.0
        self.asked = 0
        self.clock = ServerClock(self.now, self.ask, lambda: self.elapsed)

    def now(self) -> datetime:
        return NOON + SECOND * (self.elapsed + self.ahead)

    def ask(self) -> tuple[datetime, Skew]:
        self.asked += 1
        return NOON + SECOND * self.elapsed, Skew(self.ahead, 0.01)


def test_the_time_is_the_servers_whatever_the_hosts_clock_says() -> None:
    host = Host()
    host.ahead = 6 * 3600
    assert host.clock.now() == NOON + timedelta(hours=6)  # nothing is compared yet
    host.clock.compare()
    assert host.clock.now() == NOON
    host.elapsed = 4.0
    host.ahead = -6 * 3600  # the host's clock is set back
    assert host.clock.now() == NOON + SECOND * 4
    assert host.asked == 1


@pytest.mark.parametrize(("ahead", "trusted"), [(4.9, True), (-4.9, True), (5.02, False), (-5.02, False), (1e9, False)])
def test_a_host_is_trusted_within_the_limit(ahead: float, trusted: bool) -> None:
    host = Host()
    assert host.clock.trusted
    host.ahead = ahead
    host.clock.compare()
    assert host.clock.trusted is trusted
    host.ahead = 0.0
    host.clock.compare()
    assert host.clock.trusted


def test_the_limits_are_settings(settings: Any) -> None:
    settings.CRON_CLOCK_LIMIT_SECONDS = "60"
    host = Host()
    host.ahead = 59.0
    host.clock.compare()
    assert host.clock.trusted


def test_a_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    with caplog.at_level(logging.INFO, logger="scheduling"):
        for ahead in (0.0, 3.0, 3.1, -9.0, -9.1, 0.1, 0.0):
            host.ahead = ahead
            host.clock.compare()
    assert [record.message for record in caplog.records] == [
        "The clock is 3.0 s ahead of the database's",
        "The clock is 9.0 s behind the database's; nothing is claimed, started or recovered here",
        "The clock agrees with the database's again",
    ]


def test_a_slow_answer_makes_no_wrong_clock() -> None:
    assert skew(1000.0, 1004.0, 1009.0).certain == 0.0
    assert skew(1000.0, 1010.0, 1002.0) == Skew(-9.0, 1.0)
    assert skew(1000.0, 1010.0, 1002.0).certain == 8.0


@pytest.mark.django_db
def test_the_servers_time_is_read_in_utc() -> None:
    """The server and the tests share one host, so that the clocks agree; with SQLite the host's clock is used."""
    server = ServerClock()
    server.compare()
    assert abs(server.now() - clock.now()) < timedelta(minutes=1)
    assert server.trusted
    assert (server._compared is None) is (connection.vendor == "sqlite")


@pytest.mark.parametrize(
    ("reading", "uncertainty", "wanted"),
    [
        (9.7, 0.2, 10.0),  # the answer took 0.4 s: the counted time is possible, and nearer
        (10.3, 0.2, 10.3),  # the reading is greater: the first answer took longer
        (9.7, 0.1, 9.7),  # not even the whole duration explains the difference: the server's clock was set back
        (-50.0, 1.0, -50.0),
    ],
)
def test_of_two_late_times_the_greater_is_kept(reading: float, uncertainty: float, wanted: float) -> None:
    elapsed, answers = 0.0, iter([(0.0, 0.01), (reading, uncertainty)])

    def ask() -> tuple[datetime, Skew]:
        seconds, half = next(answers)
        return NOON + SECOND * seconds, Skew(0.0, half)

    host = ServerClock(lambda: NOON, ask, lambda: elapsed)
    host.compare()
    elapsed = 10.0
    host.compare()
    assert host.now() == NOON + SECOND * wanted
