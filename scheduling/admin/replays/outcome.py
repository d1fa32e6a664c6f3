"""How the executions of a replay ended: `98 succeeded, 3 failed again.`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.models import Replay, ReplayChunk, SchedulerExecution


class OutcomeLimits:
    """Pages show replays every two seconds, so they look at a limited number of executions."""

    executions: ClassVar[int] = 1_000
    """Of each replay, the first executions that were sent."""
    per_query: ClassVar[int] = 1_000


Pairs = dict[int, int]
"""Maps the id of each execution that was sent to the number of its last attempt before."""


def outcomes(rows: Sequence[Replay]) -> dict[int, str]:
    """The outcomes of each replay in words. Two queries, or a few more if many executions were sent."""
    sent = _sent(rows)
    ids = list({pk for pairs in sent.values() for pk in pairs})
    now: dict[int, tuple[str, int]] = {}
    for start in range(0, len(ids), OutcomeLimits.per_query):
        found = SchedulerExecution.objects.filter(pk__in=ids[start : start + OutcomeLimits.per_query])
        now |= {pk: (state, attempt) for pk, state, attempt in found.values_list("pk", "state", "attempt")}
    return {row.pk: _in_words(row, sent[row.pk], now) for row in rows}


def _sent(rows: Sequence[Replay]) -> dict[int, Pairs]:
    sent: dict[int, Pairs] = {row.pk: {} for row in rows}
    left = {row.pk: min(row.position, OutcomeLimits.executions) for row in rows}
    for replay, items in ReplayChunk.objects.filter(replay__in=left).order_by("first").values_list("replay", "items"):
        chosen = items[: left[replay]] if isinstance(items, list) and left[replay] > 0 else []
        left[replay] -= len(chosen)
        sent[replay] |= {item[0]: item[1] for item in chosen if is_pair(item)}
    for row in rows:
        if row.canary is not None:
            sent[row.pk][row.canary] = row.canary_attempt
    return sent


def is_pair(item: Any) -> bool:
    """Whether the item is a pair of ids. Plain SQL may have damaged the stored selection."""
    return isinstance(item, list) and [type(part) for part in item] == [int, int] and abs(item[0]) < 2**63


def _in_words(row: Replay, pairs: Pairs, now: Mapping[int, tuple[str, int]]) -> str:
    counts = Counter(ending(*now[pk], before) for pk, before in pairs.items() if pk in now)
    texts = [
        (_("%(count)d succeeded"), counts[State.SUCCEEDED.value]),
        (_("%(count)d failed again"), counts[State.FAILED.value]),
        (_("%(count)d cancelled or discarded"), counts[State.CANCELLED.value] + counts[State.DISCARDED.value]),
        (_("%(count)d still to end"), counts[OPEN]),
    ]
    said = ", ".join(text % {"count": count} for text, count in texts if count)
    if said and row.position > OutcomeLimits.executions:
        return _("Of the first %(count)d: %(said)s.") % {"count": OutcomeLimits.executions, "said": said}
    return f"{said}." if said else ""


OPEN = "open"


def ending(state: str, attempt: int, before: int) -> str:
    """How an execution ended; empty if it was not sent."""
    if state in OPEN_STATES:
        return OPEN
    return "" if state == State.FAILED.value and attempt <= before else state
