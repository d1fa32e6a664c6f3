"""The sentences that rows store about what ended a run or an attempt, and about what follows."""

from __future__ import annotations

from scheduling.core.stored_sentence import DECIMAL, NUMBER, SENTENCE, TIME, WORD, StoredPhrase, StoredSentence, or_text

# How an attempt ended (`core.outcome`)

TIMED_OUT = StoredSentence("It ran longer than its time limit of %(limit)s s and was ended.", limit=DECIMAL)
SOFT_TIME_LIMIT = StoredSentence("It ran longer than its soft time limit of %(limit)s s.", limit=DECIMAL)
MEMORY_LIMIT = StoredSentence(
    "It used %(used)s MiB, more than its memory limit of %(limit)s MiB, and was ended.", used=DECIMAL, limit=DECIMAL
)
LOST = StoredSentence("Its consumer stopped renewing the lease: the process or its machine died or lost the database.")
ASKED_TO_END = StoredSentence("The child process was asked to end (signal 15) by another process.")
ABORTED = StoredPhrase("6 (abort)")
KILLED = StoredPhrase("9 (KILL; often the kernel, out of memory)")
SEGMENTATION_FAULT = StoredPhrase("11 (segmentation fault)")
TERMINATED = StoredPhrase("15 (TERM)")
SIGNALS = {6: ABORTED, 9: KILLED, 11: SEGMENTATION_FAULT, 15: TERMINATED}
ENDED_BY_SIGNAL = StoredSentence("The child process was ended by signal %(signal)s.", signal=or_text(*SIGNALS.values()))
EXITED = StoredSentence("The child process exited with code %(code)s before the handler returned.", code=WORD)
INTERRUPTED = StoredSentence("The consumer was shut down; the run is given back and this attempt does not count.")
HANDLER_EXITED = StoredSentence("The handler exited with %(code)s.")
ASKS_FOR_RETRY = StoredSentence("The handler asks for a retry.")
TOO_MANY_SNOOZES = StoredSentence(
    "It has snoozed %(count)s times. The last reason: %(reason)s", count=NUMBER, reason=SENTENCE
)

# Who cancelled it

REPLACED = StoredSentence("the software: execution %(execution)s replaces it", execution=NUMBER)
SCHEDULE_DELETED = StoredSentence("the software: its schedule is deleted")
CANCELLED = StoredSentence("Cancelled.")
CANCELLED_BY = StoredSentence("Cancelled by %(by)s.")
CANCELLED_REPLACED = StoredSentence("Cancelled by the software: execution %(execution)s replaces it.", execution=NUMBER)
"""`CANCELLED_BY` with `REPLACED`."""
CANCELLED_DELETED = StoredSentence("Cancelled by the software: its schedule is deleted.")
"""`CANCELLED_BY` with `SCHEDULE_DELETED`."""
CANCELLED_BY_COMMAND = StoredSentence("Cancelled by a command.")

# What follows (`core.retry`, `execution.settle`)

NO_HELP = StoredSentence("The error says that a retry would not help.")
NO_RETRIES = StoredSentence("Retries are off.")
ONLY_RETRY_USED = StoredSentence("The only retry has been used.")
RETRIES_USED = StoredSentence("All %(count)s retries have been used.", count=NUMBER)
RETRY_FOLLOWS = StoredSentence("Retry %(number)s of %(most)s follows.", number=NUMBER, most=NUMBER)
RESTART_FOLLOWS = StoredSentence("The service has ended. Restart %(number)s follows.", number=NUMBER)

# Rules that pause a schedule (`core.run_bounds`)

RAN_ONCE = StoredSentence("It has run once.")
RAN_OFTEN = StoredSentence("It has run %(count)s times.", count=NUMBER)
FAILED_ONCE = StoredSentence("1 failure; the last is execution %(execution)s.", execution=NUMBER)
FAILED_OFTEN = StoredSentence(
    "%(count)s failures in a row; the last is execution %(execution)s.", count=NUMBER, execution=NUMBER
)

# Imports that make a schedule paused (`management.moving`)

NOT_SWITCHED_FROM_CRONTAB = StoredSentence("Imported from a crontab, and not switched over yet.")
NOT_SWITCHED_FROM_BEAT = StoredSentence("Imported from Celery beat, and not switched over yet.")
NOT_SWITCHED_OVER = (NOT_SWITCHED_FROM_CRONTAB.template, NOT_SWITCHED_FROM_BEAT.template)
"""The reasons of schedules that an import with `--paused` has made, as rows have them in each language of the site."""
OFF_IN_BEAT = StoredSentence("It was disabled in Celery beat.")

# Rows that cannot be used, and databases that were copied or restored

UNUSABLE_ROW = StoredSentence("A column of this row cannot be used. Correct it, then republish.")
COLUMN = StoredSentence("Column %(column)s: %(error)s", column=WORD)
SET_ASIDE = StoredSentence(
    "It waited or ran when the database was copied or backed up, and was set aside when the database was confirmed."
)
MAY_HAVE_RUN = StoredSentence("It may have run elsewhere. Republish it if it must run here.")
NO_DEPLOYMENT_ROW = StoredSentence(
    "The row that names the deployment of this database is missing, and the database has executions. So it is unknown "
    "whether it is a copy."
)
OTHER_DEPLOYMENT = StoredSentence(
    "The database belongs to %(its)s, and the settings of this process are those of %(own)s."
)
RESTORED = StoredSentence("The database was restored: its newest beat is that, and one is known.")
RESTORED_OLDER = StoredSentence(
    "The database was restored: its newest beat is that of %(older)s, and one is known.", older=TIME
)
RESTORED_NEWER = StoredSentence(
    "The database was restored: its newest beat is that, and one of %(newer)s is known.", newer=TIME
)
RESTORED_BOTH = StoredSentence(
    "The database was restored: its newest beat is that of %(older)s, and one of %(newer)s is known.",
    older=TIME,
    newer=TIME,
)
NOT_ASKED = StoredSentence("The broker could not be asked yet whether this database was restored.")
FILE_REPLACED = StoredSentence("The file of the SQLite database was replaced a moment ago.")

# Backfills

MADE_BY_BACKFILL = StoredSentence("Made by backfill %(backfill)s, which %(by)s has asked for.", backfill=NUMBER)
MADE_BY_COMMAND = StoredSentence("Made by backfill %(backfill)s, which a command has asked for.", backfill=NUMBER)
MADE_BECAUSE = StoredSentence("Made by backfill %(backfill)s, which %(by)s has asked for. %(reason)s", backfill=NUMBER)
MADE_BY_COMMAND_BECAUSE = StoredSentence(
    "Made by backfill %(backfill)s, which a command has asked for. %(reason)s", backfill=NUMBER
)

BACKFILL_DELETED = StoredSentence("Its schedule was deleted.")
BACKFILL_SERVICE = StoredSentence("Its schedule has become a service. A service has no runs of its instants.")
CANNOT_GO_ON = StoredSentence("It cannot go on: %(error)s")


def made_by_backfill(backfill: int, by: str, reason: str) -> str:
    """The reason of a run of a backfill. `by` is the user who has asked for it; empty for a command."""
    if by:
        return (MADE_BECAUSE if reason else MADE_BY_BACKFILL).format(backfill=backfill, by=by, reason=reason)
    return (MADE_BY_COMMAND_BECAUSE if reason else MADE_BY_COMMAND).format(backfill=backfill, reason=reason)
