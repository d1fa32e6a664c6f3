"""Writes a check-in for Sentry Crons. Only this module imports sentry_sdk, which the extra `sentry` installs.

The SDK writes the envelope, but does not send it: its own transport drops what it cannot deliver, and does not say so.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from django.utils.translation import gettext_noop

from scheduling.conf import get_conf
from scheduling.core import delivery_sentences as say
from scheduling.core.pings import Event
from scheduling.core.retry import delays
from scheduling.core.sentry_monitors import monitor_config, slug
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Ping, Scheduler
from scheduling.models.execution import message_of
from scheduling.models.plan import OVERDUE_AFTER
from scheduling.pings.bounded import Ending, Request

IS_INSTALLED = find_spec("sentry_sdk") is not None
INSTALL = "pip install 'cronsite[sentry]'"

STATUS = {Event.START: "in_progress", Event.SUCCESS: "ok", Event.FAIL: "error"}
CONTENT_TYPE = "application/x-sentry-envelope"


def dsn() -> str:
    """The DSN of the project's own SDK, if it was initialised, else the variable SENTRY_DSN; empty if there is none."""
    return str(_options().get("dsn") or os.environ.get("SENTRY_DSN", "")) if IS_INSTALLED else ""


def problem() -> str:
    """A sentence that says why no check-in can be sent from this process; empty if it can."""
    if not IS_INSTALLED:
        return f"CRON_SENTRY_MONITORS needs the package sentry-sdk. Install it with: {INSTALL}"
    if not dsn():
        return "CRON_SENTRY_MONITORS needs a DSN: initialise sentry_sdk in the settings, or set SENTRY_DSN."
    try:
        _client(dsn(), "", "")
    except Exception as error:
        return f"The DSN of Sentry cannot be read: {type(error).__name__}."  # a DSN may have a secret key
    return ""


def request_of(ping: Ping, scheduler: Scheduler | None) -> Request | Ending:
    """The request for a check-in; an ending if there is none."""
    if scheduler is None:
        return Ending(say.NO_SCHEDULE.format())
    if said := problem():
        return Ending(said, later=True)
    client = _client(dsn(), _environment(), get_conf().release)
    client.capture_event(check_in(ping, scheduler, client.options))
    envelope = client.transport.envelopes.pop()
    client.transport.envelopes.clear()
    auth = client.transport.parsed_dsn.to_auth("cronsite")
    url = str(auth.get_api_url())
    headers = {"Content-Type": CONTENT_TYPE, "X-Sentry-Auth": str(auth.to_header()), "User-Agent": "cronsite"}
    return Request("POST", url, headers, envelope.serialize(), secrets=(dsn(), str(auth.public_key)))


def check_in(ping: Ping, scheduler: Scheduler, options: Any) -> dict[str, Any]:
    """The check-in as the SDK expects it.

    Args:
        options: the options of the client, with its environment and release.
    """
    event = Event(ping.event)
    found: dict[str, Any] = {
        "type": "check_in",
        "check_in_id": ping.run_id.hex,
        "monitor_slug": slug_of(scheduler),
        "status": STATUS[event],
        "duration": None,
        "environment": options.get("environment"),
        "release": options.get("release"),
    }
    if event is not Event.START:
        found["duration"] = max(0.0, (ping.created_at - ping.begun_at).total_seconds())
    if (config := config_of(ping, scheduler)) is not None:
        found["monitor_config"] = config
    return found


def slug_of(scheduler: Scheduler) -> str:
    """The slug of the schedule's monitor."""
    name = str(getattr(scheduler.target, "handler_name", "") or scheduler.target or "")
    return slug(scheduler.name_for_others, name, scheduler.pk)


def config_of(ping: Ping, scheduler: Scheduler) -> dict[str, Any] | None:
    """The configuration of the monitor; None if the check-in is sent without one."""
    config = RunConfigs().get(message_of(ping.execution))
    late_after = OVERDUE_AFTER + timedelta(seconds=scheduler.spread_seconds or 0)  # Sentry knows no spread
    return monitor_config(scheduler.schedule, scheduler.zone_name, late_after, config.time_limit, delays(config.policy))


NO_CONFIG = gettext_noop("Sentry gets no monitor_config, because its monitors cannot have the times of this schedule.")
"""What the page of a run says beside a check-in without a configuration."""


def _options() -> dict[str, Any]:
    import sentry_sdk

    client = sentry_sdk.get_client()
    return dict(client.options) if client.is_active() else {}


def _environment() -> str:
    found = _options().get("environment") or os.environ.get("SENTRY_ENVIRONMENT") or get_conf().deployment
    return str(found or "production")


@lru_cache(maxsize=4)
def _client(address: str, environment: str, release: str) -> Any:
    """A client of the SDK that only writes envelopes. It changes nothing in the process."""
    import sentry_sdk
    from sentry_sdk.transport import Transport

    class Collecting(Transport):
        def __init__(self, options: Any) -> None:
            super().__init__(options)
            self.envelopes: list[Any] = []

        def capture_envelope(self, envelope: Any) -> None:
            self.envelopes.append(envelope)

    return sentry_sdk.Client(
        dsn=address,
        transport=Collecting,
        environment=environment or None,
        release=release or _options().get("release"),
        default_integrations=False,
        auto_enabling_integrations=False,
        auto_session_tracking=False,
        send_client_reports=False,
        enable_backpressure_handling=False,
        server_name="",
    )
