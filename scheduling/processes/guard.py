"""Looks whether this process may work with its database, or must hold because it is a copy or was restored.

Every door to a claim, a start or a publish calls `check` in the transaction that opens it, or compares the row with
what is `remembered` in its own statement. The call reads one row by its primary key. So nothing slips through when the
database is replaced under a process that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db import connection
from django.utils import timezone as clock

from scheduling.conf import get_conf
from scheduling.core import run_sentences as say
from scheduling.core.deployment import Held, Hold, Note, Standing, beat_due, decode_note, judge
from scheduling.core.lifecycle import LONGEST_HEARTBEAT_SECONDS, heartbeat_seconds
from scheduling.logs import get_logger
from scheduling.processes import beat_file
from scheduling.processes.deployment_row import (
    Values,
    adopt,
    make_row_if_new,
    read_row,
    record_hold,
    standing,
    write_beat,
)
from scheduling.processes.own_identity import own_identity
from scheduling.processes.server_clock import elapsed_seconds
from scheduling.processes.sqlite_file import sqlite_file

log = get_logger(__name__)

FRESH_SECONDS = 3 * LONGEST_HEARTBEAT_SECONDS
"""A process that has not looked for this long may have slept through a restore. So it asks the broker and the file.

An idle consumer looks with every second heartbeat."""

NOT_ASKED = say.NOT_ASKED.format()

FILE_REPLACED = say.FILE_REPLACED.format()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The row of the deployment as it was when it was last found fine. `worked` never runs back in a fine row."""

    timeline: str
    name: str
    fingerprints: str
    worked: int


Read = Callable[[], Values | None]
"""Returns the row of the deployment, see `deployment_row.read_row`."""


class KeepsBeats(Protocol):
    """The part of a transport that keeps the newest beat outside of the database."""

    embedded: bool

    def beat(self, body: bytes) -> None: ...
    def newest_beat(self) -> bytes | None: ...


class Guard:
    """What one process knows about its database. One instance serves the whole process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know nothing, as after the start of a process."""
        self._known: dict[str, Note] = {}
        self._fine: tuple[Any, ...] | None = None
        """The values of the row, besides the beat, that were last judged fine."""
        self._worked = 0
        self._seen: int | None = None
        self._looked_at: float | None = None
        self._asked = False
        self._said = ""

    def look(self, broker: KeepsBeats | None = None) -> Hold | None:
        """Read the row and judge it. None if this process may work.

        Args:
            broker: is asked for the newest beat, if this process has not asked it lately.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        sqlite_file.follow()
        return self._look(broker)[0]

    def check(self, broker: KeepsBeats | None = None, *, may_claim: bool = False) -> None:
        """Do the same as `look`, but raise an error if this process must hold. It may be called in a transaction.

        Args:
            may_claim: whether the caller only claims, which needs no broker. All others wait until the broker has said
                what it knows.

        Raises:
            Held: nothing may be claimed, started or published.
            django.db.DatabaseError: the database cannot be reached.
        """
        if sqlite_file.follow() and connection.in_atomic_block:
            raise Held(FILE_REPLACED)
        hold, _row = self._look(broker)
        if hold is not None:
            raise Held(hold.said)
        if broker is not None and not broker.embedded and not self._asked and not may_claim:
            raise Held(NOT_ASKED)

    def remembered(self, broker: KeepsBeats) -> Remembered | None:
        """What a statement may compare with the row in place of `check`. Then it tells `found`.

        Returns:
            None if this process must look, as after its start: it does not know that it may work, or it has not asked
            the broker.
        """
        if self._fine is None or self._looked_at is None or not (self._asked or broker.embedded):
            return None
        timeline, identity, held, own = self._fine
        if held or own != own_identity() or elapsed_seconds() - self._looked_at > FRESH_SECONDS:
            return None
        return Remembered(timeline, identity.name, " ".join(identity.fingerprints), self._worked)

    def found(self, worked: int) -> None:
        """A statement has found the row as remembered, with so many worked seconds."""
        self._worked, self._looked_at = worked, elapsed_seconds()

    def must_wait(self, broker: KeepsBeats, what: str) -> bool:
        """Whether `check` raises Held, for a caller that goes on without what must wait."""
        try:
            self.check(broker)
        except Held as held:
            log.debug("%s: %s", what, held)
            return True
        return False

    def beat(
        self, broker: KeepsBeats, now: datetime, read: Read = read_row, *, heartbeats: int = 1, idle: bool = False
    ) -> Hold | None:
        """Look, and write the beat if no other process has done so since this process's last beat.

        Args:
            read: returns the row, if a larger statement has just read it.
            heartbeats: how many heartbeats lie between two calls.
            idle: whether this process has started and claimed nothing since the last call. Then it only looks: a
                restore of what was there since would lose nothing, and hundreds of processes may be idle.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        sqlite_file.follow()
        hold, row = self._look(broker, read)
        if hold is not None or row is None:
            self._seen = None
            return hold
        seen, self._seen = self._seen, row.worked
        interval = max(1, round(heartbeats * heartbeat_seconds(get_conf().lease_seconds)))
        wrote = not idle and beat_due(seen, row.worked) and write_beat(row, interval, now)
        if wrote:
            self._seen = row.worked + interval
        note = Note(row.timeline, self._seen, now, row.former)
        self._remember(note)
        beat_file.write_note(note)  # each host may have a file of its own
        if wrote:
            broker.beat(note.encode())
        return None

    def _look(self, broker: KeepsBeats | None, read: Read = read_row) -> tuple[Hold | None, Standing | None]:
        values = read()
        if values is None and make_row_if_new():
            values = read_row()
        notes = list(self._newly_asked(broker))
        if values is None:
            return self._judged(judge(None, own_identity(), ())), None
        row = standing(values)
        own = own_identity()
        fine = (row.timeline, row.identity, row.held, own)
        if not notes and fine == self._fine and row.worked >= self._worked:
            self._worked = row.worked
            return None, row
        hold = judge(row, own, [*self._known.values(), *notes])
        if hold is None:
            adopt(row, own)
            self._fine, self._worked = fine, row.worked
            # A fail-over may have lost the last seconds. From now on, what the database has counts.
            self._known[row.timeline] = Note(row.timeline, row.worked, row.beat_at, row.former)
        else:
            self._fine = None
            if hold.newest is not None:  # in a transaction that ends with `Held`, the next look records it
                record_hold(hold, row, clock.now())
            for note in notes:
                self._remember(note)
        return self._judged(hold), row

    def _newly_asked(self, broker: KeepsBeats | None) -> Iterator[Note]:
        """The notes of the file and of the broker, if this process has just started or has not looked for long."""
        at = elapsed_seconds()
        if self._looked_at is None or at - self._looked_at > FRESH_SECONDS:
            self._asked = False
            yield from beat_file.read_notes()
        self._looked_at = at
        if broker is None or self._asked:
            return
        if broker.embedded:
            self._asked = True
            return
        try:
            body = broker.newest_beat()
        except Exception as error:  # the layer of the transports lies above this one, and so do its errors
            log.debug("The broker cannot be asked for the newest beat: %s", error)
            return
        self._asked = True
        if body is not None and (note := decode_note(body)) is not None:
            yield note

    def _remember(self, note: Note) -> None:
        known = self._known.get(note.timeline)
        if known is None or note.worked >= known.worked:
            self._known[note.timeline] = note

    def _judged(self, hold: Hold | None) -> Hold | None:
        """Log once that this process holds, and once that it goes on."""
        said = hold.said if hold is not None else ""
        if said != self._said:
            if said:
                log.error("Nothing is claimed, started or published: %s", said)
            else:
                log.info("The database is confirmed; work goes on")
            self._said = said
        return hold


guard = Guard()
"""The guard of this process."""
