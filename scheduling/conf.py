"""Django settings -> one frozen, bounded object.

Every setting has a default and bounds; an unusable value is a `ConfError` whose text says
which name, what was found and what is allowed. The system check (`checks.py`) and every
command turn it into one sentence; nothing else reads `django.conf.settings.CRON_*`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from scheduling.core.cron import ZoneError, zone
from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid

DEFAULT_COMMANDS = ("clearsessions", "cleanup_executions", "check", "showmigrations")


class ConfError(ValueError):
    """A setting cannot be used."""


@dataclass(frozen=True)
class Conf:
    """What the producer, the consumers and the admin may be told from outside."""

    broker_url: str = "database://"
    timezone: str = "UTC"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    catch_up_seconds: int = 86_400
    lease_seconds: int = 15
    grace_seconds: int = 30
    time_limit_seconds: int = 0
    """Default time limit of a run; 0 is none."""
    output_max_bytes: int = 1_000_000
    """Kept per attempt: half from its beginning, half from its end."""
    commands: tuple[str, ...] = DEFAULT_COMMANDS
    retention_days: int = 30


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
    scheme = url.split("://", 1)[0] if "://" in url else ""
    if scheme not in {"database", "amqp", "amqps"}:
        # The value is not repeated: it may hold a password.
        raise ConfError(f"{name} must begin with database://, amqp:// or amqps://.")
    return url


_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "BROKER_URL": ("broker_url", _broker),
    "CRON_TIMEZONE": ("timezone", _zone),
    "CRON_CATCH_UP_SECONDS": ("catch_up_seconds", _integer(60, 366 * 86_400)),
    "CRON_LEASE_SECONDS": ("lease_seconds", _integer(3, 3_600)),
    "CRON_GRACE_SECONDS": ("grace_seconds", _integer(0, 86_400)),
    "CRON_TIME_LIMIT_SECONDS": ("time_limit_seconds", _integer(0, 30 * 86_400)),
    "CRON_OUTPUT_MAX_BYTES": ("output_max_bytes", _integer(1_000, 100_000_000)),
    "CRON_COMMANDS": ("commands", _words),
    "CRON_RETENTION_DAYS": ("retention_days", _integer(1, 36_500)),
}

_RETRY_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "CRON_MAX_RETRIES": ("max_retries", _integer(0, 19)),
    "CRON_RETRY_DELAY_MS": ("delay_ms", _integer(1_000, 3_600_000)),
    "CRON_RETRY_DELAY_MULTIPLIER": ("multiplier", _number),
    "CRON_RETRY_MAX_DELAY_MS": ("max_delay_ms", _integer(1_000, 3_600_000)),
    "CRON_RETRY_JITTER": ("jitter", _flag),
}


def problems() -> list[str]:
    """Every unusable setting, a sentence each; empty when `get_conf` will succeed."""
    found: list[str] = []
    _read(found)
    return found


def _read(found: list[str]) -> Conf:
    def collect(readers: dict[str, tuple[str, Callable[[str, Any], Any]]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, (attribute, reader) in readers.items():
            if hasattr(settings, name):
                try:
                    values[attribute] = reader(name, getattr(settings, name))
                except ConfError as error:
                    found.append(str(error))
        return values

    values = collect(_READERS)
    try:
        values["retry"] = RetryPolicy(**collect(_RETRY_READERS))
    except RetryPolicyInvalid as error:
        found.append(f"The CRON_RETRY_ settings do not fit together: {error}")
    known = {each.name for each in fields(Conf)}
    return Conf(**{name: value for name, value in values.items() if name in known})


@lru_cache(maxsize=1)
def get_conf() -> Conf:
    """The settings of this process.

    Raises:
        ConfError: naming every unusable setting.
    """
    found: list[str] = []
    conf = _read(found)
    if found:
        raise ConfError(" ".join(found))
    return conf


def _forget(**_kwargs: object) -> None:
    get_conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="scheduling.conf")
