"""Writes a ping in the protocol of Healthchecks (https://healthchecks.io/docs/http_api/)."""

from __future__ import annotations

from scheduling.core import delivery_sentences as say
from scheduling.core.pings import Event, ping_url
from scheduling.models import Ping
from scheduling.pings.address import resolved
from scheduling.pings.bounded import Ending, Request
from scheduling.pings.failure_text import failure_text

HEADERS = {"User-Agent": "cronsite", "Accept": "*/*"}


def request_of(ping: Ping, url: str) -> Request | Ending:
    """The request for a ping; an ending if there is none.

    Args:
        url: the ping URL of the schedule, as it is stored.
    """
    if not url:
        return Ending(say.NO_PING_URL.format())
    full, problem = resolved(url)
    if problem:
        return Ending(problem, later=True)  # a process that has the variable may send it
    event = Event(ping.event)
    address = ping_url(full, event, ping.run_id)
    if event is not Event.FAIL:
        return Request("GET", address, HEADERS, secrets=(full,))
    headers = HEADERS | {"Content-Type": "text/plain; charset=utf-8"}
    return Request("POST", address, headers, failure_text(ping).encode(), secrets=(full,))
