"""What dies is told once by what still lives, and its return once; if everything is dead, the heartbeat stops.

`TEST_ALERT_MINUTES=10` runs each situation with the default settings, and looks for repetitions for so long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from django.db import connection

from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert
from tests.contract.proxy import Proxy
from tests.contract.server import Server, require
from tests.e2e.alert_site import AlertSite, alert_site, database_behind_a_proxy
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

MINUTES = float(os.environ.get("TEST_ALERT_MINUTES", "0"))
FULL = pytest.mark.skipif(not MINUTES, reason="TEST_ALERT_MINUTES is not set")

QUICK = {"CRON_ALERTS_SECONDS": "1", "CRON_LEASE_SECONDS": "3"}

START, END = "start", "end"
PRODUCER, CONSUMER = RuleKind.NO_PRODUCER, RuleKind.NO_CONSUMER
BROKER, DATABASE = RuleKind.BROKER_AWAY, RuleKind.DATABASE_AWAY
EVERYTHING = ("web", "producer", "consumer")


@dataclass
class Place:
    """The servers that a test can take away."""

    open_site: Callable[..., AlertSite]
    broker: Proxy | None = None
    database: Proxy | None = None
    environment: dict[str, str] = field(default_factory=dict)


@pytest.fixture(params=["database", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def place(request: pytest.FixtureRequest, commands: Commands, free_port: int) -> Iterator[Place]:
    """Provide a site with each transport. On a database server, the processes reach the database through a proxy."""
    with ExitStack() as opened:
        broker: Proxy | None = None
        url = "database://"
        if request.param == "rabbitmq":
            require()
            server = Server()
            opened.callback(server.close)
            opened.callback(commands.end)  # a process that goes on would declare the deleted queues again
            broker = Proxy(*server.address)
            opened.callback(broker.close)
            url = server.url(broker.port)
        environment: dict[str, str] = {}
        database = None
        if connection.vendor != "sqlite":
            database, environment["DATABASE_URL"] = opened.enter_context(database_behind_a_proxy())

        def open_site(**more: str) -> AlertSite:
            return opened.enter_context(alert_site(commands, free_port, url, **environment, **more))

        yield Place(open_site, broker, database)


def test_each_death_is_told_once_by_what_lives(place: Place) -> None:
    """The short form: the processes on SQLite, the broker with RabbitMQ, the database or both on a database server."""
    site = place.open_site(**QUICK)
    site.start(*EVERYTHING)
    site.rules(PRODUCER, CONSUMER, BROKER, DATABASE, seconds=10.0)
    if place.database is not None and place.broker is not None:
        place.database.freeze()  # as a server that is suspended
        place.broker.shut()
        site.told((DATABASE, START), (BROKER, START))
        place.database.thaw()
        site.told((DATABASE, END))
        place.broker.reopen()
        site.told((BROKER, END))
    elif place.database is not None:
        place.database.shut()
        site.told((DATABASE, START))
        place.database.reopen()
        site.told((DATABASE, END))
        assert Alert.objects.get().ended_at is not None
    elif place.broker is not None:
        place.broker.shut()
        site.told((BROKER, START))
        site.replace_holder()  # the next one goes on with what this one has told
        place.broker.reopen()
        site.told((BROKER, END))
    else:
        site.kill("producer", "consumer")
        site.told((PRODUCER, START), (CONSUMER, START))
        wait_for(lambda: "fail" in site.pings(), "the monitor is told, too")
        site.start("producer", "consumer")
        site.told((PRODUCER, END))  # that of the consumers waits for a calm half minute
        site.kill(*EVERYTHING)
        heard = len(site.pings())
        site.nothing_more(13.0)  # twice the time between two heartbeats
        assert len(site.pings()) <= heard + 1, "the heartbeat has stopped"


CASES = {
    "producers": (PRODUCER,), "consumers": (CONSUMER,), "all but the web server": (PRODUCER, CONSUMER),
    "broker": (BROKER,), "database": (DATABASE,), "everything": (),
}  # fmt: skip


@FULL
@pytest.mark.parametrize("case", CASES)
def test_for_minutes(case: str, place: Place) -> None:
    """One alert within 90 s, one notice of its end, and none repeated for minutes, with the default settings."""
    kinds = CASES[case]
    proxy = {"broker": place.broker, "database": place.database}.get(case)
    if case in {"broker", "database"} and proxy is None:
        pytest.skip("there is no such server")
    names = {
        "producers": ["producer"], "consumers": ["consumer"], "all but the web server": ["producer", "consumer"],
        "everything": list(EVERYTHING),
    }.get(case, [])  # fmt: skip
    site = place.open_site()
    site.start(*EVERYTHING)
    site.rules(PRODUCER, CONSUMER, BROKER, DATABASE, seconds=None)
    wait_for(lambda: "ok" in site.pings(), "a process evaluates")
    if proxy is not None:
        proxy.shut()
    site.kill(*names)
    heard = len(site.pings())
    if case == "everything":
        site.nothing_more(MINUTES * 60)
        assert len(site.pings()) <= heard + 1
        print(f"{case}: the heartbeat stopped")  # noqa: T201
        return
    started = site.told(*((kind, START) for kind in kinds), seconds=90)
    site.nothing_more(MINUTES * 60)
    if proxy is not None:
        proxy.reopen()
    site.start(*names)
    ended = site.told(*((kind, END) for kind in kinds), seconds=90)
    site.nothing_more(min(MINUTES, 2) * 60)
    print(f"{case}: start told after {started:.1f} s, end told after {ended:.1f} s, none repeated")  # noqa: T201
