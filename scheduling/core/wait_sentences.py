"""The sentences about runs that wait: for a pause, a circuit breaker, a place, another run, or another consumer."""

from __future__ import annotations

from scheduling.core.stored_sentence import CLOCK, DECIMAL, NUMBER, TIME, StoredPhrase, StoredSentence, one_of, or_text

_WORKER = StoredPhrase("the worker %(name)s")
_REPORT = StoredPhrase("the report %(name)s")
_REMINDER = StoredPhrase("the reminder %(name)s")
SUBJECT = or_text(_WORKER, _REPORT, _REMINDER)
"""A handler within a sentence, such as `the worker 'push'`."""

# Pauses (`core.pauses`)

_EVERYTHING = StoredPhrase("Everything")
_QUEUE = StoredPhrase("The queue %(name)s")
_ONE_WORKER = StoredPhrase("The worker %(name)s")
_ONE_REPORT = StoredPhrase("The report %(name)s")
_ONE_REMINDER = StoredPhrase("The reminder %(name)s")
_WHAT = {"subject": one_of(_EVERYTHING, _QUEUE, _ONE_WORKER, _ONE_REPORT, _ONE_REMINDER)}
PAUSED = StoredSentence("%(subject)s is paused: %(reason)s.", **_WHAT)
PAUSED_UNTIL = StoredSentence("%(subject)s is paused until %(until)s: %(reason)s.", until=TIME, **_WHAT)
PAUSED_BY = StoredSentence("%(subject)s is paused by %(by)s: %(reason)s.", **_WHAT)
PAUSED_BY_UNTIL = StoredSentence("%(subject)s is paused by %(by)s until %(until)s: %(reason)s.", until=TIME, **_WHAT)

# Circuit breakers (`core.breaker`)

OPENED = StoredSentence(
    "%(failed)s of %(ended)s runs within %(seconds)s s have failed.", failed=NUMBER, ended=NUMBER, seconds=DECIMAL
)
_BREAKER = {"since": TIME, "subject": SUBJECT, "reason": or_text(OPENED)}
HALF_OPEN = StoredSentence(
    "The circuit breaker of %(subject)s lets waiting runs through one after another.", subject=SUBJECT
)
HALF_OPEN_SINCE = StoredSentence(
    "The circuit breaker of %(subject)s lets waiting runs through one after another since %(since)s.",
    subject=SUBJECT,
    since=TIME,
)
OPEN = StoredSentence("The circuit breaker of %(subject)s is open: %(reason)s", subject=SUBJECT, reason=or_text(OPENED))
OPEN_SINCE = StoredSentence("The circuit breaker of %(subject)s is open since %(since)s: %(reason)s", **_BREAKER)
OPEN_PROBE = StoredSentence(
    "The circuit breaker of %(subject)s is open since %(since)s: %(reason)s The next probe follows at %(probe)s UTC "
    "at the earliest.",
    probe=CLOCK,
    **_BREAKER,
)
WAS_PROBE = StoredSentence(
    "It was a probe of the circuit breaker of %(subject)s, and has failed. It waits.", subject=SUBJECT
)

# Limits (`core.run_limit`)

KEYED = StoredPhrase("%(subject)s with the key %(key)s", subject=SUBJECT)
LIMITED = or_text(KEYED, _WORKER, _REPORT, _REMINDER)
WAITS_FOR_SPAN = StoredSentence(
    "It waits for its turn: %(starts)s runs of %(subject)s have started within %(seconds)s s. The next one starts at "
    "%(at)s UTC at the earliest.",
    starts=NUMBER,
    subject=LIMITED,
    seconds=DECIMAL,
    at=CLOCK,
)
WAITS_FOR_PLACE = StoredSentence(
    "It waits for a place: %(taken)s of %(at_once)s runs of %(subject)s run.",
    taken=NUMBER,
    at_once=NUMBER,
    subject=LIMITED,
)
WAITS_IN_LINE = StoredSentence("It waits for its turn: older runs of %(subject)s wait for a place.", subject=LIMITED)

# Overlap (`core.overlap`)

REPLACES = StoredSentence("It replaces execution %(execution)s, and starts when that one has ended.", execution=NUMBER)
WAITS_FOR_RUN = StoredSentence("It waits until execution %(execution)s is over.", execution=NUMBER)

# Consumers with other code (`core.deferral`), or of other handlers (`core.chosen`)

AND_MORE = StoredPhrase("%(name)s and %(count)s more", count=NUMBER)
_NAMES = or_text(AND_MORE)
WAITS_FOR_KNOWING = StoredSentence(
    "It waits for a consumer that knows %(subject)s: %(names)s. The consumer %(here)s took it, but has other code, "
    "which does not know %(same)s.",
    subject=SUBJECT,
    names=_NAMES,
    same=SUBJECT,
)
WAITS_FOR_DEPLOY = StoredSentence(
    "No consumer that is alive knows %(subject)s. It waits until %(until)s UTC for a deploy that brings it.",
    subject=SUBJECT,
    until=CLOCK,
)
WAITS_FOR_VERSION = StoredSentence(
    "It waits for a consumer with another version of %(subject)s: %(names)s. The consumer %(here)s refused its "
    "parameters, because its code has another version of %(same)s.",
    subject=SUBJECT,
    names=_NAMES,
    same=SUBJECT,
)
WAITS_FOR_CODE = StoredSentence(
    "It waits until %(until)s UTC for a consumer with the code of %(names)s. The consumer %(here)s refused its "
    "parameters, because its code has another version of %(same)s.",
    until=CLOCK,
    names=_NAMES,
    same=SUBJECT,
)
NOT_RUN_HERE = StoredSentence(
    "The consumer %(here)s does not run %(subject)s: it was started with %(chosen)s.", subject=SUBJECT
)
NOT_READY = StoredSentence("The handler is not ready yet.")
NEW_LISTENERS = StoredSentence("A consumer with newer code has further listeners: %(names)s.")
