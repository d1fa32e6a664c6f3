"""The sentences that rows store about the failed inbox and about replays."""

from __future__ import annotations

from scheduling.core.stored_sentence import NUMBER, SENTENCE, TIME, StoredSentence

REPUBLISHED = StoredSentence("Republished by %(by)s.")
REPUBLISHED_EDITED = StoredSentence("Republished by %(by)s, with edited parameters.")
REPUBLISHED_AT = StoredSentence("Republished by %(by)s. It starts at %(at)s.", at=TIME)
REPUBLISHED_EDITED_AT = StoredSentence("Republished by %(by)s, with edited parameters. It starts at %(at)s.", at=TIME)
REPUBLISHED_CANARY = StoredSentence("Republished by %(by)s as the canary of replay %(replay)s.", replay=NUMBER)
REPUBLISHED_REPLAY = StoredSentence(
    "Republished by %(by)s in replay %(replay)s, after its canary %(canary)s succeeded.", replay=NUMBER, canary=NUMBER
)
DISCARDED = StoredSentence("Discarded by %(by)s: %(reason)s")
TOO_OLD = StoredSentence("Removed from the inbox by retention: it is older than failures are kept.")

GAVE_UP = StoredSentence("RabbitMQ gave up bringing its message: the delivery limit of its queue was reached.")
FOUND = StoredSentence("It was found in the failed queue.")
NO_REASON = StoredSentence("It lies in the failed queue, and nothing says why.")
MOVED_BACK = StoredSentence("Its message was moved back from the failed queue.")
NOT_RECORDED = StoredSentence("It cannot be recorded: %(error)s")
NOT_STARTED = StoredSentence("It cannot be started: %(error)s")
NO_EXECUTION = StoredSentence("It names execution %(execution)s, which is not on record.", execution=NUMBER)
OTHER_KEY = StoredSentence("It names execution %(execution)s by another key: %(key)s, not %(own)s.", execution=NUMBER)
OTHER_TARGET = StoredSentence("It names execution %(execution)s, which is of %(own)s, as %(target)s.", execution=NUMBER)

CANARY_FAILED_WITH = StoredSentence("The canary failed: %(error)s", error=SENTENCE)
CANARY_FAILED = StoredSentence("The canary failed.")
CANARY_GONE = StoredSentence("The canary's row is gone, so it is unknown how it ended.")
CANARY_CANCELLED = StoredSentence("The canary was cancelled.")
CANARY_DISCARDED = StoredSentence("The canary was discarded.")
CANARY_SKIPPED = StoredSentence("The canary was skipped, because its handler had nothing to do.")
NOTHING_LEFT = StoredSentence("Nothing of it could be run: it had left the inbox, or cannot be read.")
NOT_OVER = StoredSentence(
    "Nothing of it could be run now: other executions of its schedules are not over. Try again later."
)
REQUEST_DIED = StoredSentence("The request that began it ended before its first run was sent.")
REQUEST_ENDED = StoredSentence("Its request ended before all was collected. Nothing was sent.")
UNREADABLE = StoredSentence("It cannot be read: %(error)s")
SELECTION_UNREADABLE = StoredSentence("Its selection cannot be read: %(error)s")
STOPPED_BY = StoredSentence("Stopped by %(by)s.")
