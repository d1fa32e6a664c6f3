"""A broker that is lost, suspended or back is noticed, and no look hangs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from scheduling.alerts.brokers import BrokerWatch, watch_of
from tests.contract.proxy import Proxy
from tests.contract.server import Server, require
from tests.support import wait_for


@pytest.fixture
def proxied() -> Iterator[tuple[BrokerWatch, Proxy]]:
    """The watch of a broker behind a proxy."""
    require()
    with closing(Server()) as server, closing(Proxy(*server.address)) as proxy:
        watch = BrokerWatch(server.url(proxy.port), wait=0.3, silent=1.0)
        yield watch, proxy
        watch.close()
        wait_for(lambda: watch._broker is None, "it is disconnected")


def answers(watch: BrokerWatch) -> bool:
    watch.look()
    return watch._thread is not None and not watch._thread.is_alive() and watch.away_seconds == 0


def is_away(watch: BrokerWatch) -> bool:
    watch.look()
    return watch.away_seconds > 0


@pytest.mark.rabbitmq
def test_a_broker_that_goes_and_comes_back(
    proxied: tuple[BrokerWatch, Proxy], caplog: pytest.LogCaptureFixture
) -> None:
    watch, proxy = proxied
    wait_for(lambda: answers(watch), "it answers")
    with caplog.at_level(logging.INFO):
        proxy.shut()
        wait_for(lambda: is_away(watch), "it is away")
        since = watch._since
        for _look in range(20):
            watch.look()
        assert watch._since == since, "it has been away since then"
        assert watch.reason
        assert ":guest@" not in watch.reason, "no password"
        proxy.reopen()
        wait_for(lambda: answers(watch), "it is back")
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("scheduling")]
    assert len(ours) <= 3, ours  # `logs.configure` silences pika


@pytest.mark.rabbitmq
def test_a_suspended_broker(proxied: tuple[BrokerWatch, Proxy]) -> None:
    watch, proxy = proxied
    wait_for(lambda: answers(watch), "it answers")
    proxy.freeze()
    watch.look()
    assert watch._thread is not None
    assert watch._thread.is_alive(), "the look has ended without an answer"
    wait_for(lambda: is_away(watch), "it is away")
    proxy.thaw()
    wait_for(lambda: answers(watch), "it answers again")


def test_a_process_goes_on_with_what_the_one_before_has_told(free_port: int) -> None:
    watch = BrokerWatch(f"amqp://guest:guest@127.0.0.1:{free_port}/", wait=10.0)
    watch.assume_away(3_600)
    watch.look()
    assert watch.away_seconds >= 3_600
    watch.close()


def test_the_database_as_the_queue_has_no_broker() -> None:
    assert watch_of("database://") is None
