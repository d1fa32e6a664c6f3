"""Which process sends a ping, and what has become of it. Each step is a compare-and-set on the row of the ping."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from scheduling.core import delivery_sentences as say
from scheduling.core.pings import Event, age_of, reason_to_drop, wait_before
from scheduling.logs import get_logger
from scheduling.models import Ping
from scheduling.models.ping import ERROR_LENGTH, HOST_LENGTH
from scheduling.pings.bounded import SECONDS, Ending

log = get_logger(__name__)

CLAIM = timedelta(seconds=3 * SECONDS)
"""How long a ping belongs to the process that sends it. After that, another process sends it again."""

SILENT = say.SILENT.format()
UNKNOWN = say.UNKNOWN.format()

EVENTS = frozenset(Event)


def give_up_lost(ping: Ping, now: datetime) -> bool:
    """Give up a ping whose sender has died, if it is not worth a second try. It may have arrived."""
    if not (reason := _drop(ping, now)):
        return False
    columns = {"state": Ping.State.DROPPED, "at": now, "sending": False, "error": _dropped(UNKNOWN, reason)}
    return bool(_still_due(ping, now).update(**columns))


def _still_due(ping: Ping, now: datetime) -> QuerySet[Ping]:
    """The row, if no other process has taken it since it was read."""
    return Ping.objects.waiting().tried_by(now).filter(pk=ping.pk, tries=ping.tries)


def claim(ping: Ping, now: datetime) -> bool:
    """Take the ping for this process: of two processes, one gets it."""
    rows = _still_due(ping, now)
    if not rows.update(at=now + CLAIM, tries=ping.tries + 1, sending=True):
        return False
    ping.tries += 1
    return True


def record(ping: Ping, end: Ending, host: str, now: datetime) -> None:
    """Write what has become of a try. Nothing is written if another process has taken the ping over."""
    columns = {"sending": False, "host": host[:HOST_LENGTH], "error": end.reason[:ERROR_LENGTH], "at": now}
    if not end.reason:
        columns["state"] = Ping.State.SENT
    elif not end.later:
        columns["state"] = Ping.State.DROPPED
    elif reason := _drop(ping, now):
        columns |= {"state": Ping.State.DROPPED, "error": _dropped(end.reason, reason)}
    else:
        columns["at"] = now + wait_before(ping.tries)
    if columns.get("state") == Ping.State.DROPPED:
        log.warning("A ping was not delivered: %s", columns["error"], extra={"execution": ping.execution_id})
    Ping.objects.filter(pk=ping.pk, state=Ping.State.WAITING, tries=ping.tries).update(**columns)


def _dropped(error: str, reason: str) -> str:
    return f"{error} It is not tried again: {reason}."[:ERROR_LENGTH]


def put_off(ping: Ping, until: datetime, now: datetime) -> None:
    """Leave the ping for later, because its host does not answer."""
    columns: dict[str, object] = {"sending": False}
    if reason := _drop(ping, now):
        columns |= {"state": Ping.State.DROPPED, "at": now, "error": _dropped(SILENT, reason)}
    else:
        columns |= {"at": until, "tries": ping.tries - 1}
    Ping.objects.filter(pk=ping.pk, state=Ping.State.WAITING, tries=ping.tries).update(**columns)


def _drop(ping: Ping, now: datetime) -> str:
    """Why this ping is not tried again; empty if it is."""
    if ping.event not in EVENTS:
        return "it tells no event"
    event = Event(ping.event)
    later = Ping.objects.filter(
        scheduler_id=ping.scheduler_id, kind=ping.kind, state=Ping.State.WAITING, pk__gt=ping.pk
    )
    later = later.filter(run_id=ping.run_id) if event is Event.START else later.exclude(event=Event.START)
    return reason_to_drop(event, age_of(ping.created_at, now), is_followed=later.exists())
