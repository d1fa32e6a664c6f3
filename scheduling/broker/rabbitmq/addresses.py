"""Reads a broker URL that names one address or several addresses of one RabbitMQ cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import randrange

from scheduling.broker.rabbitmq.address import Address
from scheduling.core.setting_values import ConfError

_BETWEEN_URLS = re.compile(r"\s*,\s*(?=amqps?://)")


@dataclass(frozen=True)
class Addresses:
    """The addresses of one cluster. `str(addresses)` has no password and may be logged.

    CRON_BROKER_URL has one of two forms. In both, a comma separates the addresses:

    - Several hosts in one URL: `amqp://user:password@a:5672,b:5672,c:5672/vhost?prefix=x`. The user, the password, the
      vhost and the parameters belong to all hosts. So they cannot differ by mistake.
    - Several URLs: `amqp://user:password@a/vhost,amqp://user:password@b/vhost`. The vhost and the prefix must be equal.

    A connection begins at a random address and goes on to the next one when an address does not work. Always beginning
    at the first address was rejected: all connections would be on one node, and after this node's death all of them
    would go to the second node. So the order of the addresses has no meaning.

    Raises:
        ConfError: the URL cannot be read. The error text never contains a password.
    """

    all: tuple[Address, ...]

    @classmethod
    def read(cls, url: str) -> Addresses:
        """Read a broker URL."""
        found = tuple(Address(one) for text in _BETWEEN_URLS.split(url.strip()) for one in _hosts(text))
        names = [str(address) for address in found]
        for name in names:
            if names.count(name) > 1:
                raise ConfError(f"CRON_BROKER_URL names {name} twice. Name each node of the cluster once.")
        if len({(address.vhost, address.prefix) for address in found}) > 1:
            raise ConfError("CRON_BROKER_URL: all addresses must have the same virtual host and the same prefix=.")
        return cls(found)

    def __str__(self) -> str:
        return ", ".join(str(address) for address in self.all)

    def __len__(self) -> int:
        return len(self.all)

    @property
    def prefix(self) -> str:
        """The text with which every queue name begins."""
        return self.all[0].prefix

    def start(self) -> int:
        """The position of the address at which a connection begins."""
        return randrange(len(self.all))  # noqa: S311 - it spreads the connections and guards no secret


def _hosts(url: str) -> list[str]:
    """One URL for each host of a URL. A comma in the user or in the password separates nothing."""
    scheme, separator, rest = url.partition("://")
    end = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    login, at_sign, hosts = rest[:end].rpartition("@")
    names = [name.strip() for name in hosts.split(",")]
    if len(names) > 1 and not all(names):
        raise ConfError(
            "CRON_BROKER_URL has an empty address: write one host between two commas, such as a:5672,b:5672."
        )
    if any(re.search(r"[;\s]", name) for name in names):
        raise ConfError("CRON_BROKER_URL has a blank or a semicolon in a host. Separate the hosts by commas.")
    if "," in rest[end:].partition("?")[0]:
        raise ConfError(
            "CRON_BROKER_URL has a comma in the virtual host. Write several hosts before the virtual host "
            "(amqp://user:password@a:5672,b:5672/vhost), and a comma in its name as %2C."
        )
    return [f"{scheme}{separator}{login}{at_sign}{name}{rest[end:]}" for name in names]
