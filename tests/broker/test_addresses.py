"""The tests read broker URLs that name several addresses."""

from __future__ import annotations

import pytest

from scheduling.broker import address_count
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.core.setting_values import ConfError


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("amqp://a", "amqp://a:5672"),
        ("amqp://ann:pw@a:1,b:2/", "amqp://ann@a:1, amqp://ann@b:2"),
        ("amqps://ann:pw@a,b/v?prefix=x_", "amqps://ann@a:5671/v, amqps://ann@b:5671/v"),
        ("amqp://ann:p,w@[::1]:7, b/", "amqp://ann@::1:7, amqp://ann@b:5672"),
        ("amqp://ann:pw@a/v, amqp://bob:px@b/v", "amqp://ann@a:5672/v, amqp://bob@b:5672/v"),
        ("amqp://ann:pw@a,b/v,amqp://ann:pw@c/v", "amqp://ann@a:5672/v, amqp://ann@b:5672/v, amqp://ann@c:5672/v"),
    ],
)
def test_a_list_of_addresses(url: str, text: str) -> None:
    addresses = Addresses.read(url)
    assert str(addresses) == text
    assert len(addresses) == address_count(url) == text.count("amqp")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("amqp://ann:hunter2@a,,b/", "empty address"),
        ("amqp://ann:hunter2@a,b,/", "empty address"),
        ("amqp://ann:hunter2@a;b/", "semicolon"),
        ("amqp://ann:hunter2@a b/", "blank"),
        ("amqp://ann:hunter2@a,b:port/", "cannot be read"),
        ("amqp://ann:hunter2@a,b,a:5672/", "amqp://ann@a:5672 twice"),
        ("amqp://ann:hunter2@a/v,b:5672/v", "comma in the virtual host"),
        ("amqp://ann:hunter2@a/v,http://ann:hunter2@b/v", "comma in the virtual host"),
        ("amqp://ann:hunter2@a/v,amqp://ann:hunter2@b/w", "the same virtual host"),
        ("amqp://ann:hunter2@a/v?prefix=x,amqp://ann:hunter2@b/v", "the same virtual host and the same prefix"),
        ("amqp://ann:hunter2@a,b/v?x=1", "unknown parameter"),
    ],
)
def test_a_wrong_list_has_a_sentence_without_the_password(url: str, words: str) -> None:
    with pytest.raises(ConfError) as caught:
        Addresses.read(url)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_connections_begin_at_different_addresses() -> None:
    addresses = Addresses.read("amqp://a,b,c/")
    assert {addresses.start() for _ in range(200)} == {0, 1, 2}
