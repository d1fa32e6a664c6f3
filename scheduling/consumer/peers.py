"""Knows the other processes, and the code that each of them has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from scheduling.core.deferral import DEPLOY_GRACE, Peer
from scheduling.logs import get_logger
from scheduling.models import KnownHandler, Process
from scheduling.models.process import oldest_beat
from scheduling.processes.database import is_away
from scheduling.processes.identity import container_id

log = get_logger(__name__)

KEEP_SECONDS = 1.0
"""How long the list of the other processes is used, so that a thousand runs do not make a thousand queries."""


class Other(NamedTuple):
    """A process beside this one, alive or not."""

    row: Process
    alive: bool
    handler_set: int


class Peers:
    """The processes beside this one."""

    def __init__(self) -> None:
        self._others: list[Other] = []
        self._others_until = 0.0
        self._contracts: dict[tuple[str, str, int], str | None] = {}
        """Maps a type, a name and a set of handlers to the contract. A set never changes."""

    def knowing(self, type_: str, name: str, queue: str, now: datetime) -> Iterator[Peer]:
        """The other processes that know a handler, or knew it before they ended.

        Args:
            queue: the work queue of the run.
        """
        others = self.present(now)
        missing = {other.handler_set for other in others if (type_, name, other.handler_set) not in self._contracts}
        if missing:
            known = KnownHandler.objects.filter(type=type_, name=name, handler_set__in=missing)
            contracts = dict(known.values_list("handler_set", "contract"))
            self._contracts |= {(type_, name, pk): contracts.get(pk) for pk in missing}
        for other in others:
            own = self._contracts[type_, name, other.handler_set]
            if own is not None:
                row = other.row
                consumes = row.kind == Process.Kind.CONSUMER and row.serves(queue)
                yield Peer(row.container_id, consumes, other.alive, row.heartbeat_at, own)

    def present(self, now: datetime) -> list[Other]:
        """The other processes with a heartbeat within the last `DEPLOY_GRACE`."""
        if time.monotonic() >= self._others_until:
            try:
                self._others = self._read(now)
            except Exception as error:
                if is_away(error):
                    raise
                self._others = []  # plain SQL has written a value that cannot be read
                log.warning("The other processes cannot be read: %s", error)
            self._others_until = time.monotonic() + KEEP_SECONDS
        return self._others

    def _read(self, now: datetime) -> list[Other]:
        alive_since = oldest_beat(now)
        recent = Process.objects.filter(
            heartbeat_at__gte=min(now - DEPLOY_GRACE, alive_since), handler_set__isnull=False
        )
        return [
            Other(row, row.is_alive(now), row.known_set)
            for row in recent.exclude(container_id=container_id())
            if row.known_set is not None
        ]
