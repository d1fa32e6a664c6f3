"""Decides whether a run waits for a consumer with other code, instead of failing on the consumer that took it.

During a deploy, old and new consumers take messages from one queue. A consumer may get a run whose handler it does not
know, or params that only other code accepts. Such a run is put off: it uses up no retry, and it is offered again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.core import wait_sentences as say
from scheduling.core.text import visible_text

DEPLOY_GRACE = timedelta(seconds=60)
"""How long a run waits for code that no consumer has, because a deploy may bring it."""

FIRST_DELAY = timedelta(seconds=1)
LAST_DELAY = timedelta(seconds=10)


@dataclass(frozen=True)
class Peer:
    """Another process, as far as it knows one handler.

    Args:
        name: its `container_id`.
        consumes: whether it is a consumer of the run's queue.
        alive: whether it has not stopped, and its heartbeat is recent.
        beat_at: the time of its last heartbeat.
        contract: the hash of the handler's params contract (`handlers.contract`).
    """

    name: str
    consumes: bool
    alive: bool
    beat_at: datetime
    contract: str


def offered_after(asked_at: datetime, now: datetime) -> timedelta:
    """How long a run that is put off waits until it is offered again.

    The delay grows with the time since the run was first put off. So the runs that wait in a long deploy do not keep
    the old consumers busy.
    """
    return min(max(FIRST_DELAY, (now - asked_at) / 4), LAST_DELAY)


def reason_for_unknown(subject: str, here: str, peers: Collection[Peer], asked_at: datetime, now: datetime) -> str:
    """Why a run waits whose handler this consumer does not know. Empty if it does not wait.

    It waits while another consumer of the queue knows the handler. It also waits `DEPLOY_GRACE` from the time when the
    run was first put off, and from the last heartbeat of the last consumer that knew the handler.

    Args:
        subject: names the handler, such as `the worker 'sync'`.
        here: the name of this consumer.
        peers: the other processes that know the handler, or knew it.
        asked_at: when the run was first put off; `now` if it is put off for the first time.
    """
    consumers = [peer for peer in peers if peer.consumes]
    knowing = sorted(peer.name for peer in consumers if peer.alive)
    if knowing:
        facts = {"subject": subject, "same": subject, "here": visible_text(here)}
        return say.WAITS_FOR_KNOWING.format(**facts, names=_some(knowing))
    until = max([min(asked_at, now), *(min(peer.beat_at, now) for peer in consumers)]) + DEPLOY_GRACE
    if now < until:
        return say.WAITS_FOR_DEPLOY.format(subject=subject, until=_clock(until))
    return ""


def reason_for_refused(
    subject: str,
    here: str,
    refused: Collection[str],
    peers: Iterable[Peer],
    asked_at: datetime,
    now: datetime,
) -> str:
    """Why a run waits whose params this consumer's code refuses. Empty if it does not wait.

    It waits while a consumer is alive whose code has another params contract, unless that contract has refused the run
    before. If only a producer or a consumer of another queue has such a contract, a deploy has begun, and the consumers
    of this queue may follow: the run waits `DEPLOY_GRACE`.

    Args:
        refused: the contracts that have refused the params, with the one of this consumer.
    """
    others = [peer for peer in peers if peer.alive and peer.contract not in refused]
    consumers = sorted(peer.name for peer in others if peer.consumes)
    facts = {"subject": subject, "same": subject, "here": visible_text(here)}
    if consumers:
        return say.WAITS_FOR_VERSION.format(**facts, names=_some(consumers))
    until = min(asked_at, now) + DEPLOY_GRACE
    if others and now < until:
        return say.WAITS_FOR_CODE.format(**facts, until=_clock(until), names=_some([others[0].name]))
    return ""


def _clock(instant: datetime) -> str:
    return f"{instant:%H:%M:%S}"


def _some(names: list[str]) -> str:
    first = visible_text(names[0])
    return first if len(names) == 1 else say.AND_MORE.format(name=first, count=len(names) - 1)
