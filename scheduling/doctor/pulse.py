"""Pulse: is the process of this container at work? For probes, so it asks one cheap question."""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError

from scheduling.conf import ConfError, get_conf
from scheduling.doctor.database import alias, impatient
from scheduling.doctor.finding import span, words
from scheduling.models import Process

WEB_SECONDS = 5.0


@dataclass(frozen=True)
class Pulse:
    """Whether it is well, and why, in a line."""

    well: bool
    text: str


def of_process(kind: str, now: datetime, seconds: float, host: str = "") -> Pulse:
    """The youngest heartbeat of a producer or consumer of this host; in a container, of the container.

    A consumer renews its heartbeat with its leases, so it is given at least the length of one.
    """
    host = host or socket.gethostname()[:255]
    try:
        limit = timedelta(seconds=max(seconds, get_conf().lease_seconds if kind == "consumer" else 0))
        with impatient():
            row = (
                Process.objects.using(alias())
                .filter(kind=kind, host=host, stopped_at__isnull=True, heartbeat_at__gte=now - 10 * limit)
                .order_by("-heartbeat_at")
                .values_list("container_id", "heartbeat_at")
                .first()
            )
    except ConfError as error:
        return Pulse(False, str(error))
    except DatabaseError as error:
        return Pulse(False, f"the database does not answer: {words(error)}")
    if row is None:
        return Pulse(False, f"no {kind} is at work on {host}")
    container, beat = row
    age = (now - beat).total_seconds()
    return Pulse(age <= limit.total_seconds(), f"{kind} {container}, last heartbeat {span(max(age, 0.0))} ago")


def of_web(port: int, host: str = "127.0.0.1") -> Pulse:
    """Whether the web server here answers; without the database, whose absence is no reason to restart it."""
    connection = http.client.HTTPConnection(host, port, timeout=WEB_SECONDS)
    try:
        # Under a name that the site goes by: any other is logged as an error each time. A redirect will do.
        connection.request("GET", "/", headers={"Host": _own_name()})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return Pulse(False, f"web on port {port} does not answer: {error}")
    finally:
        connection.close()
    return Pulse(status < 500, f"web on port {port} answers {status}")


def _own_name() -> str:
    names = [name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return names[0] if names else "localhost"
