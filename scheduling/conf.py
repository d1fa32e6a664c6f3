"""Reads the Django settings of this app into one frozen object with checked values.

Every setting has a default and bounds. An unusable value raises a `ConfError`. The text of the error names the setting,
its value and the allowed values. It never shows the broker URL, because the URL may contain a password. The system
checks (`checks.py`) and the commands show this text. No other module reads `django.conf.settings.CRON_*`.

A project may have settings such as BROKER_URL and LOG_LEVEL for another package. So these short names count only where
CRON_SHORT_NAMES is true, as in the site of this repository.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from scheduling.core import setting_values as read
from scheduling.core.backfill import MOST as BACKFILL_MOST
from scheduling.core.chat_services import SCHEMES
from scheduling.core.retention import DAYS, KEEP, RetentionPolicy
from scheduling.core.retry import DELAY_MS, MAX_RETRIES, RetryPolicy, RetryPolicyInvalid
from scheduling.core.setting_values import ConfError, Reader
from scheduling.core.words import in_english
from scheduling.logs import validate

DEFAULT_COMMANDS = ("clearsessions", "cleanup_executions", "check", "showmigrations")


@dataclass(frozen=True)
class Conf:
    """The checked settings of the producer, the consumers and the admin."""

    broker_url: str = "database://"
    queue_type: str = "classic"
    """The type of the work queues in RabbitMQ: `classic` or `quorum`."""
    timezone: str = "UTC"
    seconds: bool = False
    """Whether intervals may count seconds (`@every 10s`)."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    catch_up_seconds: int = 86_400
    backfill_most: int = 1_000
    """The largest number of occurrences of one schedule that one backfill covers."""
    lease_seconds: int = 15
    clock_warn_seconds: int = 2
    clock_limit_seconds: int = 5
    """A process whose clock differs by this much from the database's neither claims, starts nor recovers runs."""
    grace_seconds: int = 30
    time_limit_seconds: int = 0
    """Default time limit of a run in seconds; 0 means no limit."""
    output_max_bytes: int = 1_000_000
    """How many bytes of an attempt's output are kept: half from the beginning, half from the end."""
    attachment_max_bytes: int = 100_000_000
    """The size of the largest file that a handler may attach to its run."""
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
    tally_days: int = 400
    """After how many days an hour of the tallies is removed."""
    revision_days: int = 365
    """After how many days a revision of a schedule is removed that no execution names."""
    metrics_token: str = field(default="", repr=False)
    """The bearer token with which Prometheus reads the metrics; empty for none."""
    metrics_addresses: tuple[IPv4Network | IPv6Network, ...] = ()
    """The addresses that may read the metrics without a token."""
    internal_hosts: tuple[str, ...] = ()
    """Hosts that may be called although they have an internal address: `name` or `name:port`, in lower case."""
    chat_schemes: tuple[str, ...] = tuple(SCHEMES)
    """What the addresses of channels may begin with, in lower case."""
    heartbeat_url: str = field(default="", repr=False)
    """The ping URL that hears every minute that alerts are evaluated; empty for none. It is a secret."""
    sentry_monitors: bool = False
    """Whether Sentry is told about the runs of each schedule."""
    deployment: str = ""
    """The name of this deployment, such as `production`; empty if a fingerprint of the settings tells it."""
    release: str = ""
    """The version of the project's code, which is recorded with each attempt; empty if it is unknown."""
    beat_file: str = ""
    """The path of the file that notes the newest beat outside of the database; empty for no file."""
    site_url: str = ""
    """The address of the site, such as `https://cron.example.com`, for links in messages; empty for no links."""
    alerts: bool = True
    """Whether producers, consumers and `run_web` evaluate the alerts. The command `evaluate_alerts` always does."""
    alerts_seconds: int = 10
    """The time between two evaluations of the alerts, in seconds. The lease of the process that evaluates is three
    times as long."""

    api: bool = False
    """Whether the HTTP API answers where the project has mounted it."""
    api_per_minute: int = 600
    """How many requests a token or a user may send to the API in a minute."""
    api_instant_seconds: int = 20
    """How long a request of the API may wait for the end of a run, in seconds."""

    def retention(self, days: int | None = None) -> RetentionPolicy:
        """The policy of executions, without the values of single schedules.

        Args:
            days: replaces `retention_days`.
        """
        ended = self.retention_days if days is None else days
        success = ended if self.retention_success_days is None else self.retention_success_days
        output, keep = self.retention_output_days, self.retention_keep
        return RetentionPolicy(success, ended, self.retention_failed_days, output, keep)


_READERS: dict[str, tuple[str, Reader]] = {
    "CRON_BROKER_URL": ("broker_url", read.broker_url),
    "CRON_QUEUE_TYPE": ("queue_type", read.queue_type),
    "CRON_TIMEZONE": ("timezone", read.time_zone),
    "CRON_SECONDS": ("seconds", read.flag),
    "CRON_CATCH_UP_SECONDS": ("catch_up_seconds", read.integer(60, 366 * 86_400)),
    "CRON_BACKFILL_MOST": ("backfill_most", read.integer(*BACKFILL_MOST)),
    "CRON_LEASE_SECONDS": ("lease_seconds", read.integer(3, 3_600)),
    "CRON_CLOCK_WARN_SECONDS": ("clock_warn_seconds", read.integer(1, 86_400)),
    "CRON_CLOCK_LIMIT_SECONDS": ("clock_limit_seconds", read.integer(1, 86_400)),
    "CRON_GRACE_SECONDS": ("grace_seconds", read.integer(0, 86_400)),
    "CRON_TIME_LIMIT_SECONDS": ("time_limit_seconds", read.integer(0, 30 * 86_400)),
    "CRON_OUTPUT_MAX_BYTES": ("output_max_bytes", read.integer(1_000, 100_000_000)),
    "CRON_ATTACHMENT_MAX_BYTES": ("attachment_max_bytes", read.integer(1_000, 10_000_000_000)),
    "CRON_COMMANDS": ("commands", read.added_to(DEFAULT_COMMANDS)),
    "CRON_RETENTION_DAYS": ("retention_days", read.integer(*DAYS)),
    "CRON_RETENTION_SUCCESS_DAYS": ("retention_success_days", read.optional(read.integer(*DAYS))),
    "CRON_RETENTION_FAILED_DAYS": ("retention_failed_days", read.optional(read.integer(*DAYS))),
    "CRON_RETENTION_OUTPUT_DAYS": ("retention_output_days", read.optional(read.integer(*DAYS))),
    "CRON_RETENTION_KEEP": ("retention_keep", read.optional(read.integer(*KEEP))),
    "CRON_RETENTION_ONE_TIME_DAYS": ("retention_one_time_days", read.optional(read.integer(*DAYS))),
    "CRON_TALLY_DAYS": ("tally_days", read.integer(*DAYS)),
    "CRON_REVISION_DAYS": ("revision_days", read.integer(365, DAYS[1])),
    "CRON_METRICS_TOKEN": ("metrics_token", read.token),
    "CRON_METRICS_ADDRESSES": ("metrics_addresses", read.networks),
    "CRON_INTERNAL_HOSTS": ("internal_hosts", read.hosts),
    "CRON_CHAT_SCHEMES": ("chat_schemes", read.chat_schemes),
    "CRON_HEARTBEAT_URL": ("heartbeat_url", read.ping_url),
    "CRON_SENTRY_MONITORS": ("sentry_monitors", read.flag),
    "CRON_DEPLOYMENT": ("deployment", read.name_of(read.NAME_CHARS)),
    "CRON_RELEASE": ("release", read.name_of(read.RELEASE_CHARS)),
    "CRON_BEAT_FILE": ("beat_file", read.path),
    "CRON_SITE_URL": ("site_url", read.site_url),
    "CRON_ALERTS": ("alerts", read.flag),
    "CRON_ALERTS_SECONDS": ("alerts_seconds", read.integer(1, 60)),
    "CRON_API": ("api", read.flag),
    "CRON_API_PER_MINUTE": ("api_per_minute", read.integer(1, 1_000_000)),
    "CRON_API_INSTANT_SECONDS": ("api_instant_seconds", read.integer(0, 25)),
}

_RETRY_READERS: dict[str, tuple[str, Reader]] = {
    "CRON_MAX_RETRIES": ("max_retries", read.integer(*MAX_RETRIES)),
    "CRON_RETRY_DELAY_MS": ("delay_ms", read.integer(*DELAY_MS)),
    "CRON_RETRY_DELAY_MULTIPLIER": ("multiplier", read.number),
    "CRON_RETRY_MAX_DELAY_MS": ("max_delay_ms", read.integer(*DELAY_MS)),
    "CRON_RETRY_JITTER": ("jitter", read.flag),
}

LOG_FORMAT, LOG_LEVEL, SHORT_NAMES = "CRON_LOG_FORMAT", "CRON_LOG_LEVEL", "CRON_SHORT_NAMES"

NAMES = (*_READERS, *_RETRY_READERS, LOG_FORMAT, LOG_LEVEL, SHORT_NAMES)
"""The names of all settings that are read here."""


def given_name(name: str) -> str:
    """The name under which a setting is given: the short name, if only that is given and counts.

    Args:
        name: the full name, such as CRON_BROKER_URL.
    """
    short = name.removeprefix("CRON_")
    by_short = name in _SHORT and not hasattr(settings, name) and hasattr(settings, short)
    return short if by_short and getattr(settings, SHORT_NAMES, False) else name


_SHORT = frozenset({"CRON_BROKER_URL", LOG_FORMAT, LOG_LEVEL})


def own_logging() -> bool:
    """Whether this app configures logging. If False, the project has handlers of its own."""
    return settings.LOGGING_CONFIG is None


def log_options() -> tuple[str, str]:
    """The format of log lines, and the name of the lowest level that is logged.

    Raises:
        ValueError: for an unknown format or level.
    """
    names = given_name(LOG_FORMAT), given_name(LOG_LEVEL)
    format_, level = getattr(settings, names[0], "text"), getattr(settings, names[1], "INFO")
    return format_, validate(format_, level, *names)


def problems() -> list[str]:
    """One sentence for each unusable setting; an empty list if all settings are usable."""
    return _read()[1]


@in_english()
def _read() -> tuple[Conf, list[str]]:
    found: list[str] = []

    def collect(readers: dict[str, tuple[str, Reader]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, (attribute, reader) in readers.items():
            given = given_name(name)
            if hasattr(settings, given):
                try:
                    values[attribute] = reader(given, getattr(settings, given))
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
