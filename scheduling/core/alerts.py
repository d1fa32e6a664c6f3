"""Decides which alerts begin, go on and are over, from what the rules have found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from scheduling.core.alert_rules import Severity
from scheduling.core.text import visible_text

MOST_SUBJECTS = 100
"""A rule has at most so many open alerts. Further subjects are told in one alert that counts them."""

RECORD_EVERY = timedelta(minutes=1)
"""An alert that goes on is recorded at most so often."""

KEY_CHARS, SUBJECT_CHARS, SEEN_CHARS, ADVICE_CHARS = 200, 200, 1_000, 500
"""So many characters of the texts of an alert are stored."""


@dataclass(frozen=True)
class Situation:
    """Something that a rule has found at present.

    Args:
        key: identifies the subject within the rule, such as `schedule 17`. It stays the same while the situation lasts.
        subject: the name of the subject, as pages show it.
        seen: a sentence with the facts, without passwords and without names of rows that have another group.
        advice: what to do; empty if there is nothing to do.
        schedule: the primary key of the schedule that it is about; None for the installation.
        execution: the primary key of the execution that it is about, if it is about one.
        group: the group whose members may be told; None if it belongs to no group.
    """

    key: str
    subject: str
    seen: str
    advice: str = ""
    schedule: int | None = None
    execution: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Standing:
    """An open alert.

    Args:
        pk: its primary key.
        gone_at: since when its situation was not found any longer; None if it was found at the last look.
        seen_at: when it was recorded last that its situation was found; None if that cannot be read.
        situation: what is recorded; None if that cannot be read.
        severity: the severity that is recorded; None if that cannot be read.
    """

    pk: int
    gone_at: datetime | None = None
    seen_at: datetime | None = None
    situation: Situation | None = None
    severity: str | None = None


@dataclass
class Changes:
    """What follows from one look.

    Args:
        begun: situations without an open alert.
        changed: open alerts whose situation was found again, with facts that must be recorded.
        seen: open alerts whose situation was found again as it is recorded. Only the time must be recorded.
        gone: open alerts whose situation was not found for the first time.
        over: open alerts that end.
    """

    begun: list[Situation] = field(default_factory=list)
    changed: list[tuple[Standing, Situation]] = field(default_factory=list)
    seen: list[Standing] = field(default_factory=list)
    gone: list[Standing] = field(default_factory=list)
    over: list[Standing] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.begun, self.changed, self.seen, self.gone, self.over))


def changes(standing: Mapping[str, Standing], found: Iterable[Situation], now: datetime, calm: timedelta) -> Changes:
    """Compare the open alerts of a rule with the situations that it has found.

    An alert that goes on is recorded at most once in `RECORD_EVERY`, because its facts change with each look.

    Args:
        standing: the open alerts by key.
        calm: for so long a situation must be gone before its alert is over. So a situation that comes and goes is
            one alert.
    """
    result, seen = Changes(), set[str]()
    for situation in found:
        if situation.key not in seen:
            seen.add(situation.key)
            _go_on(result, standing.get(situation.key), situation, now)
    for known in (one for key, one in standing.items() if key not in seen):
        # A clock that has jumped back makes `gone_at` later than now. The alert is then over after the next look.
        if calm <= timedelta(0) or (known.gone_at is not None and not now - calm < known.gone_at <= now):
            result.over.append(known)
        elif known.gone_at is None:
            result.gone.append(known)
    return result


def _go_on(result: Changes, known: Standing | None, situation: Situation, now: datetime) -> None:
    if known is None:
        result.begun.append(situation)
    elif known.gone_at is not None or known.situation is None:
        result.changed.append((known, situation))
    elif not _is_recent(known.seen_at, now):
        if known.situation == situation:
            result.seen.append(known)
        else:
            result.changed.append((known, situation))


def _is_recent(seen_at: datetime | None, now: datetime) -> bool:
    return seen_at is not None and now - RECORD_EVERY < seen_at <= now


def bounded(
    situations: Iterable[Situation], standing: Container[str], further: Callable[[int, int | None], Situation]
) -> list[Situation]:
    """At most `MOST_SUBJECTS` situations, and for each group one that counts its further ones.

    Those that have an alert come first. Otherwise alerts would begin and end with the order of the rows.

    Args:
        standing: the keys of the open alerts.
        further: makes the situation of a number of subjects and their group.
    """
    unique: dict[str, Situation] = {}
    for situation in situations:
        unique.setdefault(situation.key, situation)
    ordered = sorted(unique.values(), key=lambda situation: situation.key not in standing)
    first, rest = ordered[:MOST_SUBJECTS], ordered[MOST_SUBJECTS:]
    numbers = Counter(situation.group for situation in rest)
    return first + [further(number, group) for group, number in numbers.items()]


def as_stored(situation: Situation) -> Situation:
    """The situation with texts that every database can store, in visible characters, cut to their columns."""
    return Situation(
        visible_text(situation.key, KEY_CHARS)[:KEY_CHARS],
        visible_text(situation.subject, SUBJECT_CHARS)[:SUBJECT_CHARS],
        visible_text(situation.seen, SEEN_CHARS)[:SEEN_CHARS],
        visible_text(situation.advice, ADVICE_CHARS)[:ADVICE_CHARS],
        situation.schedule,
        situation.execution,
        situation.group,
    )


def open_key(rule: int, key: str) -> str:
    """The value of the unique column that makes a second open alert about the same subject impossible."""
    return sha256(f"{rule}\n{key}".encode(errors="replace")).hexdigest()


def error_group_key(fingerprint: str, group: int | None) -> str:
    """Identifies an error group of one user group."""
    return sha256(f"{group}\n{fingerprint}".encode(errors="replace")).hexdigest()


def tells(severity: str, least: str, group: int | None, of_channel: int | None) -> bool:
    """Whether a channel is told of an alert.

    Args:
        severity: the severity of the alert.
        least: the least severity that the channel is told of.
        group: the group of the alert.
        of_channel: the group of the channel. A channel with a group is told of what its members may see: of alerts of
            this group, and of alerts without a group.
    """
    return _rank(severity) >= _rank(least) and may_be_told(group, of_channel)


def may_be_told(group: int | None, of_channel: int | None) -> bool:
    """Whether the group of a channel allows alerts of this group. `alerts.aside` asks the database the same."""
    return of_channel is None or group is None or group == of_channel


def _rank(severity: str) -> int:
    """Plain SQL may have written a severity that does not exist. It is the highest: it is better told than lost."""
    try:
        return Severity(severity).rank
    except ValueError:
        return Severity.CRITICAL.rank
