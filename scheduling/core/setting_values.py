"""Reads the values of settings: each function takes the name and the value of one, and returns the checked value.

They raise a `ConfError`, whose text names the setting, its value and the allowed values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from scheduling.core.chat_services import SCHEMES
from scheduling.core.cron import ZoneError, zone
from scheduling.core.pings import is_url

NAME_CHARS = 100
"""The column of the deployment's name holds so many characters."""

RELEASE_CHARS = 64
"""The column of an attempt's release holds so many characters."""

SHORTEST_TOKEN = 16
"""A shorter token can be guessed."""

QUEUE_TYPES = ("classic", "quorum")


class ConfError(ValueError):
    """A setting cannot be used."""


Reader: TypeAlias = Callable[[str, Any], Any]
"""Takes the name and the value of a setting, and returns the checked value."""


def integer(low: int, high: int) -> Callable[[str, Any], int]:
    """Read a whole number within bounds."""

    def read(name: str, value: Any) -> int:
        try:
            number = int(str(value).strip())
        except ValueError:
            raise ConfError(f"{name} is {value!r}; it must be a whole number from {low} to {high}.") from None
        if not low <= number <= high:
            raise ConfError(f"{name} is {number}; it must be from {low} to {high}.")
        return number

    return read


def optional(read: Callable[[str, Any], int]) -> Callable[[str, Any], int | None]:
    """Read a setting that may be empty. None and an empty text mean that it is not set."""
    return lambda name, value: None if value is None or str(value).strip() == "" else read(name, value)


def number(name: str, value: Any) -> float:
    """Read a finite number."""
    try:
        found = float(str(value).strip())
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ConfError(f"{name} is {value!r}; it must be a number.")
    return found


def flag(name: str, value: Any) -> bool:
    """Read yes or no."""
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off", ""}:
        return False
    raise ConfError(f"{name} is {value!r}; write true or false.")


def time_zone(name: str, value: Any) -> str:
    """Read the name of a time zone."""
    try:
        return zone(str(value)).key
    except ZoneError as error:
        raise ConfError(f"{name}: {error}") from None


def words(_name: str, value: Any) -> tuple[str, ...]:
    """Read a list of words, which a comma separates in a text."""
    found = value.split(",") if isinstance(value, str) else value
    return tuple(word.strip() for word in found if word.strip())


def added_to(own: tuple[str, ...]) -> Callable[[str, Any], tuple[str, ...]]:
    """Read a list of words that adds to our own. `-word` takes one of our own away, and `-*` all of them."""

    def read(name: str, value: Any) -> tuple[str, ...]:
        given = words(name, value)
        without = {word[1:] for word in given if word.startswith("-")}
        if unknown := sorted(without - {*own, "*"}):
            raise ConfError(f"{name} has -{unknown[0]}; only these can be taken away: {', '.join(own)}.")
        kept = () if "*" in without else own
        found = [*kept, *(word for word in given if not word.startswith("-"))]
        return tuple(dict.fromkeys(word for word in found if word not in without))

    return read


def broker_url(name: str, value: Any) -> str:
    """Read CRON_BROKER_URL."""
    url = str(value).strip()
    if not url.startswith(("database://", "amqp://", "amqps://")):
        # The message does not repeat the value, because the value may contain a password.
        raise ConfError(f"{name} must begin with database://, amqp:// or amqps://.")
    return url


def queue_type(name: str, value: Any) -> str:
    """Read the type of the work queues."""
    text = str(value).strip().lower()
    if text not in QUEUE_TYPES:
        raise ConfError(f"{name} is {value!r}; the possible values are {' and '.join(QUEUE_TYPES)}.")
    return text


def hosts(name: str, value: Any) -> tuple[str, ...]:
    """Read names of hosts, with or without a port."""
    found = tuple(host.lower() for host in words(name, value))
    for host in found:
        if "/" in host or "*" in host or " " in host:
            raise ConfError(f"{name} has {host!r}; write names of hosts, such as api.internal or localhost:8000.")
    return found


def chat_schemes(name: str, value: Any) -> tuple[str, ...]:
    """Read what the addresses of channels may begin with."""
    schemes = tuple(word.lower().removesuffix("://") for word in words(name, value))
    for scheme in schemes:
        if scheme not in SCHEMES:
            raise ConfError(f"{name} has {scheme!r}; the possible values are {', '.join(SCHEMES)}.")
    return schemes


def name_of(limit: int) -> Callable[[str, Any], str]:
    """Read a name of at most `limit` printable characters."""

    def read(name: str, value: Any) -> str:
        text = str(value).strip()
        if len(text) > limit or not text.isprintable():
            raise ConfError(f"{name} is {text[:120]!r}; write a name of at most {limit} characters.")
        return text

    return read


def token(name: str, value: Any) -> str:
    """Read a secret that a program shows. The text of the error does not repeat it."""
    text = str(value).strip()
    if text and not (text.isascii() and text.isprintable() and " " not in text and len(text) >= SHORTEST_TOKEN):
        raise ConfError(f"{name} must have at least {SHORTEST_TOKEN} ASCII characters and no space.")
    return text


def networks(name: str, value: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    """Read addresses and networks, such as 10.0.0.7 or 10.1.0.0/16."""
    found: list[IPv4Network | IPv6Network] = []
    for word in words(name, value):
        try:
            found.append(ip_network(word))
        except ValueError as error:
            raise ConfError(f"{name} has {word!r:.60}; write addresses, such as 10.0.0.7 or 10.1.0.0/16.") from error
    return tuple(found)


def path(_name: str, value: Any) -> str:
    """Read a path of a file."""
    return str(value).strip()


def ping_url(name: str, value: Any) -> str:
    """Read the address of a monitor. The text of the error does not repeat it, because it is a secret."""
    url = str(value).strip()
    if url and not is_url(url):
        raise ConfError(f"{name} must be an address that begins with http:// or https://.")
    return url


def site_url(name: str, value: Any) -> str:
    """Read the address of the site."""
    url = str(value).strip().rstrip("/")
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise ConfError(f"{name} is {value!r}; write the address of the site, such as https://cron.example.com.")
    return url
