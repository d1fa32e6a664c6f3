"""Reads the Django settings of this app into one frozen object with checked values.

Every setting has a default and bounds. An unusable value raises a `ConfError`. The text of the error names the setting,
its value and the allowed values. It never shows the broker URL, because the URL may contain a password. The system
checks (`checks.py`) and the commands show this text. No other module reads `django.conf.settings.CRON_*`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.core.signals import setting_changed

from scheduling.core.chat_services import SCHEMES
from scheduling.core.cron import ZoneError, zone
from scheduling.core.retention import DAYS, KEEP, RetentionPolicy
from scheduling.core.retry import DELAY_MS, MAX_RETRIES, RetryPolicy, RetryPolicyInvalid

DEFAULT_COMMANDS = ("clearsessions", "cleanup_executions", "check", "showmigrations")


class ConfError(ValueError):
    """A setting cannot be used."""


@dataclass(frozen=True)
class Conf:
    """The checked settings of the producer, the consumers and the admin."""

    broker_url: str = "database://"
    timezone: str = "UTC"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    catch_up_seconds: int = 86_400
    lease_seconds: int = 15
    clock_warn_seconds: int = 2
    clock_limit_seconds: int = 5
    """A process whose clock differs by this much from the database's neither claims, starts nor recovers runs."""
    grace_seconds: int = 30
    time_limit_seconds: int = 0
    """Default time limit of a run in seconds; 0 means no limit."""
    output_max_bytes: int = 1_000_000
    """How many bytes of an attempt's output are kept: half from the beginning, half from the end."""
    commands: tuple[str, ...] = DEFAULT_COMMANDS
    retention_days: int = 30
    """After how many days an execution that ended and is not failed is removed."""
    retention_success_days: int | None = None
    """The same for an execution that succeeded; None means `retention_days`."""
    retention_failed_days: int | None = None
    """After how many days a failure leaves the inbox; None means never."""
    retention_output_days: int | None = None
    """After how many days output and artefacts are removed; None means together with their execution."""
    retention_keep: int | None = None
    """How many executions of each schedule are kept; None means that their number is not limited."""
    retention_one_time_days: int | None = None
    """After how many days a spent one-time schedule is removed; None means never."""
    internal_hosts: tuple[str, ...] = ()
    """Hosts that may be called although they have an internal address: `name` or `name:port`, in lower case."""
    chat_schemes: tuple[str, ...] = tuple(SCHEMES)
    """What the addresses of channels may begin with, in lower case."""
    site_url: str = ""
    """The address of the site, such as `https://cron.example.com`, for links in messages; empty for no links."""

    def retention(self, days: int | None = None) -> RetentionPolicy:
        """The policy of executions, without the values of single schedules.

        Args:
            days: replaces `retention_days`.
        """
        ended = self.retention_days if days is None else days
        success = ended if self.retention_success_days is None else self.retention_success_days
        output, keep = self.retention_output_days, self.retention_keep
        return RetentionPolicy(success, ended, self.retention_failed_days, output, keep)


Reader: TypeAlias = Callable[[str, Any], Any]
"""Takes the name and the value of a setting, and returns the checked value."""


def _integer(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = int(str(value).strip())
        except ValueError:
            raise ConfError(f"{name} is {value!r}; it must be a whole number from {low} to {high}.") from None
        if not low <= number <= high:
            raise ConfError(f"{name} is {number}; it must be from {low} to {high}.")
        return number

    return read


def _optional(read: Callable[[str, Any], int]) -> Callable[[str, Any], int | None]:
    """Reads a setting that may be empty. None and an empty text mean that it is not set."""
    return lambda name, value: None if value is None or str(value).strip() == "" else read(name, value)


def _number(name: str, value: Any) -> float:
    try:
        number = float(str(value).strip())
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfError(f"{name} is {value!r}; it must be a number.")
    return number


def _flag(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off", ""}:
        return False
    raise ConfError(f"{name} is {value!r}; write true or false.")


def _zone(name: str, value: Any) -> str:
    try:
        return zone(str(value)).key
    except ZoneError as error:
        raise ConfError(f"{name}: {error}") from None


def _words(_name: str, value: Any) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    return tuple(word.strip() for word in words if word.strip())


def _broker(name: str, value: Any) -> str:
    url = str(value).strip()
    if not url.startswith(("database://", "amqp://", "amqps://")):
        # The message does not repeat the value, because the value may contain a password.
        raise ConfError(f"{name} must begin with database://, amqp:// or amqps://.")
    return url


def _hosts(name: str, value: Any) -> tuple[str, ...]:
    hosts = tuple(host.lower() for host in _words(name, value))
    for host in hosts:
        if "/" in host or "*" in host or " " in host:
            raise ConfError(f"{name} has {host!r}; write names of hosts, such as api.internal or localhost:8000.")
    return hosts


def _schemes(name: str, value: Any) -> tuple[str, ...]:
    schemes = tuple(word.lower().removesuffix("://") for word in _words(name, value))
    for scheme in schemes:
        if scheme not in SCHEMES:
            raise ConfError(f"{name} has {scheme!r}; the possible values are {', '.join(SCHEMES)}.")
    return schemes


def _site(name: str, value: Any) -> str:
    url = str(value).strip().rstrip("/")
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise ConfError(f"{name} is {value!r}; write the address of the site, such as https://cron.example.com.")
    return url


_READERS: dict[str, tuple[str, Reader]] = {
    "BROKER_URL": ("broker_url", _broker),
    "CRON_TIMEZONE": ("timezone", _zone),
    "CRON_CATCH_UP_SECONDS": ("catch_up_seconds", _integer(60, 366 * 86_400)),
    "CRON_LEASE_SECONDS": ("lease_seconds", _integer(3, 3_600)),
    "CRON_CLOCK_WARN_SECONDS": ("clock_warn_seconds", _integer(1, 86_400)),
    "CRON_CLOCK_LIMIT_SECONDS": ("clock_limit_seconds", _integer(1, 86_400)),
    "CRON_GRACE_SECONDS": ("grace_seconds", _integer(0, 86_400)),
    "CRON_TIME_LIMIT_SECONDS": ("time_limit_seconds", _integer(0, 30 * 86_400)),
    "CRON_OUTPUT_MAX_BYTES": ("output_max_bytes", _integer(1_000, 100_000_000)),
    "CRON_COMMANDS": ("commands", _words),
    "CRON_RETENTION_DAYS": ("retention_days", _integer(*DAYS)),
    "CRON_RETENTION_SUCCESS_DAYS": ("retention_success_days", _optional(_integer(*DAYS))),
    "CRON_RETENTION_FAILED_DAYS": ("retention_failed_days", _optional(_integer(*DAYS))),
    "CRON_RETENTION_OUTPUT_DAYS": ("retention_output_days", _optional(_integer(*DAYS))),
    "CRON_RETENTION_KEEP": ("retention_keep", _optional(_integer(*KEEP))),
    "CRON_RETENTION_ONE_TIME_DAYS": ("retention_one_time_days", _optional(_integer(*DAYS))),
    "CRON_INTERNAL_HOSTS": ("internal_hosts", _hosts),
    "CRON_CHAT_SCHEMES": ("chat_schemes", _schemes),
    "CRON_SITE_URL": ("site_url", _site),
}

_RETRY_READERS: dict[str, tuple[str, Reader]] = {
    "CRON_MAX_RETRIES": ("max_retries", _integer(*MAX_RETRIES)),
    "CRON_RETRY_DELAY_MS": ("delay_ms", _integer(*DELAY_MS)),
    "CRON_RETRY_DELAY_MULTIPLIER": ("multiplier", _number),
    "CRON_RETRY_MAX_DELAY_MS": ("max_delay_ms", _integer(*DELAY_MS)),
    "CRON_RETRY_JITTER": ("jitter", _flag),
}

NAMES = (*_READERS, *_RETRY_READERS)
"""The names of all settings that are read here."""


def problems() -> list[str]:
    """One sentence for each unusable setting; an empty list if all settings are usable."""
    return _read()[1]


def _read() -> tuple[Conf, list[str]]:
    found: list[str] = []

    def collect(readers: dict[str, tuple[str, Reader]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, (attribute, reader) in readers.items():
            if hasattr(settings, name):
                try:
                    values[attribute] = reader(name, getattr(settings, name))
                except ConfError as error:
                    found.append(str(error))
        return values

    values = collect(_READERS)
    if not hasattr(settings, "CRON_TIMEZONE"):
        values["timezone"] = settings.TIME_ZONE or "UTC"  # Django itself has checked TIME_ZONE
    try:
        values["retry"] = RetryPolicy(**collect(_RETRY_READERS))
    except RetryPolicyInvalid as error:
        found.append(f"The CRON_RETRY_ settings do not fit together: {error}")
    return Conf(**values), found


@lru_cache(maxsize=1)
def get_conf() -> Conf:
    """The settings of this process.

    Raises:
        ConfError: at least one setting is unusable. The error has one sentence for each unusable setting.
    """
    conf, found = _read()
    if found:
        raise ConfError(" ".join(found))
    return conf


setting_changed.connect(lambda **_kwargs: get_conf.cache_clear(), weak=False, dispatch_uid="scheduling.conf")
