"""Decides whether the process of this host or container is healthy. The command `health` uses this module."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError

from scheduling.conf import get_conf
from scheduling.core.queues import work_queues
from scheduling.core.setting_values import ConfError
from scheduling.models import Process
from scheduling.models.time_words import format_span
from scheduling.monitoring.doctor.database import alias, impatient
from scheduling.monitoring.findings.finding import words
from scheduling.monitoring.findings.idle import idle_consumers, waiting_since
from scheduling.monitoring.findings.old_code import old_code_words

WEB_SECONDS = 5.0

PROBE_SECONDS = 60.0
"""A probe that fails has its container restarted, which ends its runs. So it waits longer than the pages, which call a
process silent after two missed heartbeats: a database that is away for some seconds must not end runs."""


@dataclass(frozen=True)
class Liveness:
    """Whether a process is healthy (`well`), and the reason as a line of text."""

    well: bool
    text: str


def of_process(kind: str, now: datetime, seconds: float | None = None, host: str = "") -> Liveness:
    """Whether a producer or consumer of this host (or container) is healthy. The latest heartbeat decides.

    Args:
        kind: a value of `Process.Kind`.
        seconds: the maximum age of the heartbeat, in seconds. With None: PROBE_SECONDS, or the lease if it is longer.
        host: the host name in the process's row; if empty, the name of this host.
    """
    host = host or socket.gethostname()[:255]
    try:
        longest = max(PROBE_SECONDS, get_conf().lease_seconds)
        limit = timedelta(seconds=longest if seconds is None else seconds)
        with impatient():
            recent = Process.objects.using(alias()).filter(stopped_at__isnull=True, heartbeat_at__gte=now - 10 * limit)
            row = recent.filter(kind=kind, host=host).order_by("-heartbeat_at").first()
            stalled = _stalled(row, now)
    except ConfError as error:
        return Liveness(False, str(error))
    except DatabaseError as error:
        return Liveness(False, f"the database does not answer: {words(error)}")
    if row is None:
        return Liveness(False, f"no {kind} is at work on {host}")
    age = (now - row.heartbeat_at).total_seconds()
    seen = f"{kind} {row.container_id}, last heartbeat {format_span(max(age, 0.0))} ago"
    if stalled:
        return Liveness(False, f"{seen}; {stalled}")
    old = old_code_words(row, now)  # told, but no reason to restart: the process works
    held = f"it holds: {row.held}" if row.held else ""  # a restart would not end the hold: a person must confirm
    return Liveness(age <= limit.total_seconds(), "; ".join(filter(None, (seen, held, old))))


def _stalled(row: Process | None, now: datetime) -> str:
    """Say since when runs wait beside this consumer, which runs nothing; empty if none do.

    A consumer that runs something is left alone, because a restart would end its runs.
    """
    if row is None or not row.queue or row.info.get("running"):
        return ""
    for queue in work_queues(row.queue.split(",")):
        if idle_consumers(queue, [row], now) and (since := waiting_since(queue, now)) is not None:
            return f"it is idle, and runs of its queue wait for {format_span((now - since).total_seconds())}"
    return ""


def of_web(port: int, host: str = "127.0.0.1") -> Liveness:
    """Whether this host's web server answers.

    This probe does not query the database, because a database outage is no reason to restart the web server.
    """
    # The request contains an allowed host name, because Django logs an error for any other name. A redirect counts as
    # healthy.
    name = next((name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost")
    try:
        with closing(http.client.HTTPConnection(host, port, timeout=WEB_SECONDS)) as connection:
            connection.request("GET", "/", headers={"Host": name})
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return Liveness(False, f"web on port {port} does not answer: {error}")
    return Liveness(status < 500, f"web on port {port} answers {status}")
