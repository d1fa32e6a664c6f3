"""An outage of the broker is one line at its start and one line at its end, with any number of connections."""

from __future__ import annotations

import logging
import time

import pytest

from scheduling.broker import BrokerUnavailable
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.broker.rabbitmq.outage import Outage

AWAY = BrokerUnavailable("It is away")


@pytest.fixture
def outage(caplog: pytest.LogCaptureFixture) -> Outage:
    caplog.set_level(logging.INFO)
    return Outage(Addresses.read("amqp://a,b/"))


def test_tries_that_began_before_a_connection_came_up_are_no_second_outage(
    outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    outage.begins("publish", AWAY, began)
    outage.connected("publish")
    outage.begins("consume", AWAY, began)
    outage.connected("consume")
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_tries_that_began_later_are_an_outage_though_messages_are_confirmed(
    outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    outage.connected("publish")
    began = time.monotonic()
    outage.ends("confirms")
    outage.begins("consume", AWAY, began)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
