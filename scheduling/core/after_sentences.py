"""The sentences about occurrences that wait for another schedule (`core.after`)."""

from __future__ import annotations

from scheduling.core.stored_sentence import NUMBER, TEXT, TIME, StoredPhrase, StoredSentence, one_of, or_text

_OF = {"execution": NUMBER}
IS_RUNNING = StoredPhrase("is running as execution %(execution)s", **_OF)
WAITS_FOR_ATTEMPT = StoredPhrase("waits for its next attempt as execution %(execution)s", **_OF)
WAITS_TO_START = StoredPhrase("waits to start as execution %(execution)s", **_OF)
WAS_SKIPPED = StoredPhrase("was skipped, as execution %(execution)s says", **_OF)
HAS_FAILED = StoredPhrase("has failed as execution %(execution)s", **_OF)
WAS_CANCELLED = StoredPhrase("was cancelled as execution %(execution)s", **_OF)
WAS_DISCARDED = StoredPhrase("failed and was discarded as execution %(execution)s", **_OF)
DID_NOT_SUCCEED = StoredPhrase("did not succeed as execution %(execution)s", **_OF)
PAUSED_THEN = StoredPhrase("fell into a pause")
NOT_CLAIMED = StoredPhrase("is due and has not been claimed yet")

RUNS_UNREADABLE = StoredPhrase("its executions cannot be read (%(error)s)", error=TEXT)
ROW_UNREADABLE = StoredPhrase("its row cannot be read")
NOT_JUDGED = StoredPhrase("cannot be judged: %(problem)s", problem=or_text(RUNS_UNREADABLE, ROW_UNREADABLE))

WHAT = one_of(
    IS_RUNNING, WAITS_FOR_ATTEMPT, WAITS_TO_START, WAS_SKIPPED, HAS_FAILED, WAS_CANCELLED, WAS_DISCARDED,
    DID_NOT_SUCCEED, PAUSED_THEN, NOT_CLAIMED, NOT_JUDGED,
)  # fmt: skip
"""What has become of the run of the other schedule."""

OF_OTHER_GROUP = StoredPhrase("a schedule of another group")
UNREADABLE_SCHEDULE = StoredPhrase("schedule %(schedule)s: its row cannot be read", schedule=NUMBER)
RUN_OF = StoredPhrase(
    "“%(name)s” (schedule %(schedule)s): its run of %(at)s %(what)s", schedule=NUMBER, at=TIME, what=WHAT
)
RUN = StoredPhrase("“%(name)s” (schedule %(schedule)s): its run %(what)s", schedule=NUMBER, what=WHAT)
_WHY = one_of(OF_OTHER_GROUP, UNREADABLE_SCHEDULE, RUN_OF, RUN)

WAITS = StoredSentence("Waits for %(why)s.", why=_WHY)
WAITS_FOR_ANOTHER = StoredSentence("Waits for another schedule.")
STARTED_AT_LATEST = StoredSentence("Started at its latest time. It waited for %(why)s.", why=_WHY)
NOT_STARTED_IN_TIME = StoredSentence(
    "Not started in time: until %(until)s it waited for %(why)s.", until=TIME, why=_WHY
)

LATE = StoredSentence(
    "It has not started, because the schedule before it had not succeeded. Republish it to run it now."
)
UNUSABLE = StoredSentence("It has not started. Correct its schedule, then republish it to run it.")
NO_SUCH_SCHEDULE = StoredSentence("It waits for schedule %(schedule)s, which does not exist.", schedule=NUMBER)
