"""The texts that entries of the history store, and the selections of replays. Pages show them in the reader's language.

They are phrases, so that no other text of a row, such as a reason that a user has typed, counts as one of them.
"""

from __future__ import annotations

from scheduling.core.stored_sentence import NUMBER, TEXT, TIME, StoredPhrase, or_text
from scheduling.core.words import CATALOGUES, language

CHOSEN = StoredPhrase("chosen one by one")
ALL_FAILURES = StoredPhrase("all failures of the inbox")
FAILURES_WITH = StoredPhrase("all failures with %(filters)s")
SELECTION = or_text(CHOSEN, ALL_FAILURES, FAILURES_WITH)

_INSTANTS = {"total": NUMBER, "since": TIME, "until": TIME}
_PROGRESS = {"position": NUMBER, "total": NUMBER}

ENTRY = or_text(
    StoredPhrase("acknowledge"),
    StoredPhrase("acknowledgement taken back"),
    StoredPhrase("mute"),
    StoredPhrase("unmute"),
    StoredPhrase("resume"),
    StoredPhrase("reset"),
    StoredPhrase("revoke"),
    StoredPhrase("test sent"),
    StoredPhrase("run now"),
    StoredPhrase("run now, for this run only"),
    StoredPhrase("run now: execution %(execution)s, again as %(former)s", execution=NUMBER, former=NUMBER),
    StoredPhrase("run once: execution %(execution)s", execution=NUMBER),
    StoredPhrase("run again: execution %(execution)s", execution=NUMBER),
    StoredPhrase("cancel: cancelled"),
    StoredPhrase("cancel: asked"),
    StoredPhrase("cancel: %(position)s of %(total)s done", **_PROGRESS),
    StoredPhrase("pause: %(position)s of %(total)s done", **_PROGRESS),
    StoredPhrase("resume: %(position)s of %(total)s done", **_PROGRESS),
    StoredPhrase("stop: %(position)s of %(total)s sent", **_PROGRESS),
    StoredPhrase("start: %(total)s occurrences from %(since)s until %(until)s", **_INSTANTS),
    StoredPhrase("start: %(total)s occurrences from %(since)s until %(until)s, %(reason)s", **_INSTANTS),
    StoredPhrase(
        "backfill %(backfill)s: %(total)s occurrences from %(since)s until %(until)s", backfill=NUMBER, **_INSTANTS
    ),
    StoredPhrase(
        "backfill %(backfill)s: %(total)s occurrences from %(since)s until %(until)s, %(reason)s",
        backfill=NUMBER,
        **_INSTANTS,
    ),
    StoredPhrase(
        "start: %(total)s executions, canary %(canary)s, %(selection)s",
        total=NUMBER,
        canary=TEXT,
        selection=SELECTION,
    ),
    StoredPhrase("republish"),
    StoredPhrase("republish: replay %(replay)s", replay=NUMBER),
    StoredPhrase("republish, spread over %(minutes)s minutes", minutes=NUMBER),
    StoredPhrase("discard: %(reason)s"),
    StoredPhrase("confirm: %(said)s"),
    StoredPhrase("added as a copy of schedule %(schedule)s", schedule=NUMBER),
    StoredPhrase("imported from %(source)s"),
    StoredPhrase("schedule file %(source)s"),
    StoredPhrase("undo of revision %(revision)s", revision=NUMBER),
    StoredPhrase("state of revision %(revision)s restored", revision=NUMBER),
)

BY_TOKEN = StoredPhrase("%(text)s (token “%(token)s”)", text=ENTRY)
BY_COMMAND = StoredPhrase("%(text)s (command)", text=ENTRY)
BY_SESSION = StoredPhrase("%(text)s (HTTP)", text=ENTRY)
_THROUGH = or_text(BY_TOKEN, BY_COMMAND, BY_SESSION, StoredPhrase("token “%(token)s”"), StoredPhrase("command"))


def entry_in_language(text: str) -> str:
    """The text of an entry of the history in the present language. A text of another app stays as it is."""
    if language() not in CATALOGUES:
        return text
    through = _THROUGH.said(text, 0) or text
    return through if through != text else ENTRY.said(text, 0) or text


def selection_in_language(text: str) -> str:
    """The stored selection of a replay in the present language."""
    return text if language() not in CATALOGUES else SELECTION.said(text, 0) or text
