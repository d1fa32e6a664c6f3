"""The sentences that the rows of skipped executions store. `core.skip_reasons` makes them and tells their kinds."""

from __future__ import annotations

from datetime import timedelta

from scheduling.core.stored_sentence import END, NUMBER, SENTENCE, TIME, StoredPhrase, StoredSentence, one_of, or_text

_DAYS = StoredPhrase("1 day"), StoredPhrase("%(count)s days", count=NUMBER)
_HOURS = StoredPhrase("1 hour"), StoredPhrase("%(count)s hours", count=NUMBER)
_MINUTES = StoredPhrase("1 minute"), StoredPhrase("%(count)s minutes", count=NUMBER)
_SECONDS = StoredPhrase("1 second"), StoredPhrase("%(count)s seconds", count=NUMBER)
UNITS = ((_DAYS, 86400), (_HOURS, 3600), (_MINUTES, 60), (_SECONDS, 1))
"""The phrases for one and for several of a unit, and its length in seconds."""
DURATION = one_of(*_DAYS, *_HOURS, *_MINUTES, *_SECONDS)

ONE_AT = StoredPhrase("1 occurrence at %(at)s", at=TIME)
SEVERAL_FROM = StoredPhrase("%(count)s occurrences from %(first)s to %(last)s", count=NUMBER, first=TIME, last=TIME)
RUN_AT = StoredPhrase("the run at %(at)s", at=TIME)
SPAN = one_of(ONE_AT, SEVERAL_FROM, RUN_AT)

NO_PRODUCER = StoredPhrase("no producer was running")
RAN_BEFORE_RESTORE = StoredPhrase("it ran before the database was restored, as far as is known")
CONFIRMED = StoredPhrase("the database was confirmed, and what had fallen due by then was left out")
NOT_CAUGHT_UP = StoredPhrase("the schedule does not catch up what it has missed")
OVER_CAP = StoredPhrase("more were missed than the schedule catches up")
PERHAPS_EXCLUDED = StoredPhrase("no producer was running, or a calendar excluded them")
EDITED = StoredPhrase("the schedule was edited before they were to start")
TOO_LATE = StoredPhrase("no producer ran within the catch-up window of %(window)s", window=DURATION)
MISSED = StoredSentence(
    "Missed %(span)s: %(why)s.",
    span=SPAN,
    why=one_of(NO_PRODUCER, RAN_BEFORE_RESTORE, CONFIRMED, NOT_CAUGHT_UP, OVER_CAP, PERHAPS_EXCLUDED, EDITED, TOO_LATE),
)

BY_CALENDAR = StoredSentence("%(reason)s (calendar “%(name)s”)")
SOME_CALENDAR = StoredPhrase("a calendar excludes it")
_CALENDAR_WORDS = or_text(BY_CALENDAR, SOME_CALENDAR)
EXCLUDED = StoredSentence("Excluded %(span)s: %(why)s.", span=SPAN, why=_CALENDAR_WORDS)

LATER_RAN = StoredPhrase("only the one at %(at)s runs when it is over", at=TIME)
HELD_EDITED = StoredPhrase("the schedule was edited, or paused, before it was over")
HELD = StoredSentence(
    "Held %(span)s: %(why)s; %(instead)s.", span=SPAN, why=_CALENDAR_WORDS, instead=one_of(LATER_RAN, HELD_EDITED)
)

SWITCHED_OFF = StoredSentence("The schedule was paused after the run fell due and before a producer claimed it.")
PAUSED_SERVICE = StoredSentence(
    "Left out, because the service is paused. Resume it; then its next occurrence starts it."
)
NOTHING_TO_DO = StoredPhrase("there is nothing to do.")
NOT_NEEDED = StoredSentence("Left out by its handler: %(said)s", said=or_text(NOTHING_TO_DO))
SERVICE_RUNS = StoredSentence(
    "Left out, because the service was running already, as execution %(execution)s.", execution=NUMBER
)
RUN_NOT_OVER = StoredSentence("Left out, because execution %(execution)s was not over.", execution=NUMBER)
NEWER = StoredSentence(
    "Left out, because it was still waiting when the newer execution %(execution)s fell due.", execution=NUMBER
)

FOR_A_PRODUCER = StoredPhrase("until a producer claimed it")
FOR_ITS_TURN = StoredPhrase("for its turn: %(reason)s", reason=SENTENCE)
FOR_A_CONSUMER = StoredPhrase("in the queue %(queue)s for a free consumer")
IN_QUEUE = StoredPhrase("in the queue %(queue)s: %(reason)s", reason=SENTENCE)
IN_NO_TURN = StoredPhrase("for its turn:")
"""`where_it_waits` without a reason, when the end is cut off."""
EXPIRED = StoredSentence(
    "Expired: it had not started %(within)s after it was due. It waited %(waited)s %(where)s.",
    within=DURATION,
    waited=DURATION,
    where=or_text(FOR_A_PRODUCER, FOR_ITS_TURN, FOR_A_CONSUMER, IN_QUEUE, IN_NO_TURN),
)

ONE_DID_NOT = StoredPhrase("1 occurrence did not run.")
SEVERAL_DID_NOT = StoredPhrase("%(count)s occurrences did not run.", count=NUMBER)
_PAUSED = {"start": TIME, "end": END, "left": one_of(ONE_DID_NOT, SEVERAL_DID_NOT)}
PAUSED = StoredSentence("Paused from %(start)s to %(end)s. %(left)s", **_PAUSED)
PAUSED_BY = StoredSentence("Paused by %(by)s from %(start)s to %(end)s. %(left)s", **_PAUSED)
PAUSED_BECAUSE = StoredSentence("Paused from %(start)s to %(end)s: %(why)s. %(left)s", why=SENTENCE, **_PAUSED)
PAUSED_BY_BECAUSE = StoredSentence(
    "Paused by %(by)s from %(start)s to %(end)s: %(why)s. %(left)s", why=SENTENCE, **_PAUSED
)


def duration(length: timedelta) -> str:
    """A length of time as text, in the largest unit that gives a whole number: "1 day", "90 minutes"."""
    seconds = int(length.total_seconds())
    whole = ((unit, seconds // size) for unit, size in UNITS if seconds >= size and not seconds % size)
    (one, several), number = next(whole, (_SECONDS, seconds))
    return one.format() if number == 1 else several.format(count=number)
