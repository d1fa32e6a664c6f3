"""Decides whether a process may work with this database, or must hold because the database is a copy or was restored.

The row of the deployment says whose database it is, and how long its processes have worked in all. Both move with the
data. A process compares them with its own settings, and with what was noted outside of the database (`Note`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scheduling.core import run_sentences as say
from scheduling.core.lifecycle import LONGEST_HEARTBEAT_SECONDS
from scheduling.core.words import gettext as _

LOST_TAIL_SECONDS = 60
"""By how much the worked time may run back without a hold. A standby that is promoted may lack the last seconds."""

UNTIL_NEXT_BEAT = timedelta(seconds=2 * LONGEST_HEARTBEAT_SECONDS)
"""Runs may have started after the newest beat, until the next one was due. It may have been late."""

MOST_SECONDS = 10**12
"""A greater number was not written by this software: it is 30,000 years."""

KEPT_FINGERPRINTS = 5
KEPT_TIMELINES = 20
ROUNDS = 100_000
"""The rounds of the hash. They make it costly to guess a secret key from its fingerprint in a dump of the database."""


class Held(Exception):
    """Nothing is claimed, started or published until a person has confirmed the database. The text says why."""


@dataclass(frozen=True)
class Identity:
    """Whose database it is.

    Args:
        name: the name of the deployment (CRON_DEPLOYMENT); empty if it has none.
        fingerprints: what tells a deployment without a name: a fingerprint of its settings for each of its secret keys,
            the present key first.
    """

    name: str = ""
    fingerprints: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the row belongs to no deployment yet."""
        return not self.name and not self.fingerprints

    def is_same(self, other: Identity) -> bool:
        """Whether both belong to one deployment. If both have names, the names decide; otherwise a fingerprint must."""
        if self.name and other.name:
            return self.name == other.name
        return not set(self.fingerprints).isdisjoint(other.fingerprints)

    def joined(self, other: Identity) -> Identity:
        """This stored identity with the name and the present fingerprint of the other.

        The older fingerprints stay, for processes that still have the former secret key. A rolling deploy has both.
        """
        new = [key for key in other.fingerprints[:1] if key not in self.fingerprints]
        return Identity(other.name or self.name, (*new, *self.fingerprints)[:KEPT_FINGERPRINTS])

    def __str__(self) -> str:
        """How sentences name the deployment."""
        if self.name:
            return f"“{self.name}”"
        if not self.fingerprints:
            return _("no deployment")
        return _("the deployment %(fingerprint)s") % {"fingerprint": self.fingerprints[0][:8]}


def fingerprints(keys: Iterable[str], database: str) -> tuple[str, ...]:
    """A fingerprint for each secret key. The key cannot be read from it, and each guess costs milliseconds.

    Args:
        database: the name of the database; empty if it is a file. Hosts are left out, because a fail-over changes them.
    """
    salt = f"deployment of {database}".encode()
    return tuple(hashlib.pbkdf2_hmac("sha256", key.encode(), salt, ROUNDS, 16).hex() for key in keys)


@dataclass(frozen=True)
class Note:
    """The newest beat of a timeline, as it was noted outside of the database.

    Args:
        timeline: begins with a new database, and begins anew with each confirmation.
        worked: for how many seconds the processes had worked in this timeline.
        at: when it was noted; None if it is unknown.
        former: the earlier timelines of the same deployment.
    """

    timeline: str
    worked: int
    at: datetime | None = None
    former: Collection[str] = ()

    def encode(self) -> bytes:
        """The note as JSON. `decode_note` reads it."""
        at = self.at.isoformat() if self.at is not None else None
        noted = {"timeline": self.timeline, "worked": self.worked, "at": at, "former": list(self.former)}
        return json.dumps(noted).encode()


def decode_note(body: bytes | str) -> Note | None:
    """Read a note that `Note.encode` has written. None if it is damaged, or written by something else."""
    try:
        noted = json.loads(body)
        at = datetime.fromisoformat(noted["at"]) if noted["at"] is not None else None
        former = tuple(str(timeline) for timeline in noted["former"])
        if at is not None and at.tzinfo is None:
            return None
        return Note(str(noted["timeline"]), seconds(noted["worked"]), at, former)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


@dataclass(frozen=True)
class Standing:
    """What the row of the deployment says.

    Args:
        identity: whose database it is.
        timeline, worked: see `Note`.
        beat_at: when the newest beat was written; None before the first one.
        held: the reason of a hold that a process has recorded for all; empty if there is none.
        known_until: see `Hold`; None if no process has recorded it.
        confirmed_at, confirmed_by: the last confirmation.
    """

    identity: Identity
    timeline: str
    worked: int
    beat_at: datetime | None = None
    held: str = ""
    former: Sequence[str] = ()
    known_until: datetime | None = None
    confirmed_at: datetime | None = None
    confirmed_by: str = ""


class Cause(StrEnum):
    """Why a process holds."""

    MISSING = "missing"
    OTHER = "other"
    RESTORED = "restored"


@dataclass(frozen=True)
class Hold:
    """A process must hold.

    Args:
        said: the sentence that says why.
        newest: for a restored database, the newest note about it.
    """

    cause: Cause
    said: str
    newest: Note | None = None

    @property
    def known_until(self) -> datetime | None:
        """Until when runs have started that a restored database does not know; None if that is unknown."""
        if self.newest is None or self.newest.at is None:
            return None
        return self.newest.at + UNTIL_NEXT_BEAT


MISSING = say.NO_DEPLOYMENT_ROW.format()


def judge(row: Standing | None, own: Identity, notes: Iterable[Note]) -> Hold | None:
    """Decide whether a process must hold. None if it may work.

    Args:
        row: None if the row was deleted from a database that has executions.
        own: the identity that this process's settings give.
        notes: what this process, its file and the broker know.
    """
    if row is None:
        return Hold(Cause.MISSING, MISSING)
    if not row.identity.is_empty and not row.identity.is_same(own):
        said = say.OTHER_DEPLOYMENT.format(its=row.identity, own=own)
        return Hold(Cause.OTHER, said)
    if row.held:
        return Hold(Cause.RESTORED, row.held)
    return _restored(row, notes)


def _restored(row: Standing, notes: Iterable[Note]) -> Hold | None:
    newest: Note | None = None
    for note in notes:
        if note.timeline == row.timeline:
            ran_back = note.worked - row.worked > LOST_TAIL_SECONDS
        else:
            ran_back = row.timeline in note.former  # the database is older than its last confirmation
        if ran_back and (newest is None or _order(note) > _order(newest)):
            newest = note
    if newest is None:
        return None
    return Hold(Cause.RESTORED, _said(row, newest), newest)


def _order(note: Note) -> tuple[int, int]:
    return len(note.former), note.worked


def _said(row: Standing, newest: Note) -> str:
    older, newer = (_reading(at) if at is not None else "" for at in (row.beat_at, newest.at))
    template = {(True, True): say.RESTORED_BOTH, (True, False): say.RESTORED_OLDER, (False, True): say.RESTORED_NEWER}
    return template.get((bool(older), bool(newer)), say.RESTORED).format(older=older, newer=newer)


def _reading(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"


def seconds(stored: object) -> int:
    """Worked seconds as they were stored; 0 for a value that plain SQL or a damaged note has made unusable."""
    return stored if type(stored) is int and 0 <= stored < MOST_SECONDS else 0


def beat_due(seen: int | None, stored: int) -> bool:
    """Whether a process writes a beat now: no other process has done so since its own last look.

    So one process of a fleet writes in each interval, no clock is compared, and a clock that jumps changes nothing.

    Args:
        seen: the worked seconds at this process's last look; None before it.
        stored: the worked seconds of the row now.
    """
    return seen is not None and stored <= seen
