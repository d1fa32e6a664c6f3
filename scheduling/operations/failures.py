"""Selects, republishes and discards failures of the inbox in the name of an actor."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError
from django.db.models import QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.broker import BrokerError
from scheduling.core.deployment import Held
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.core.spread import Spread
from scheduling.core.text import visible_text
from scheduling.execution.own_broker import own_broker
from scheduling.handlers.permission import refused_executions
from scheduling.inbox import actions
from scheduling.models import FailedExecution, SchedulerExecution
from scheduling.models.counts import count_of_state
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.away import broker_away, database_away
from scheduling.operations.batches import in_chunks
from scheduling.operations.failure_selection import Selection, chosen
from scheduling.operations.refused import Code, Problem, Refused
from scheduling.operations.replays import start_replay

VIEW = "scheduling.view_failedexecution"
REPUBLISH, DISCARD = (f"scheduling.{verb}_failedexecution" for verb in ("republish", "discard"))
REASON_LIMIT = 1_500


@dataclass(frozen=True)
class Done:
    """What became of the selected failures.

    Args:
        matching: how many failures were selected.
        done: the ids that left the inbox.
        left: how many of the selected are still in the inbox. A further request goes on with them.
        refused: how many of these cannot be republished now, or have a message that cannot be read.
        left_out: how many matched besides and were left out: their code asks for a permission that the actor lacks.
        failed_before: the instant that a later request gives back, so that it selects the same failures.
        missing: those of the chosen ids that are not in the inbox, or that the actor does not see.
    """

    matching: int
    done: tuple[int, ...]
    left: int
    refused: int
    left_out: int
    failed_before: datetime
    replay: int | None = None
    missing: tuple[int, ...] = ()


def seen(actor: Actor) -> QuerySet[FailedExecution]:
    """The failures of the inbox that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(VIEW)
    return actor.visible.failures()


def republish(
    actor: Actor, wanted: Selection, *, dry_run: bool = False, minutes: int = 0, canary: bool = False,
    key: uuid.UUID | None = None,
) -> Done:  # fmt: skip
    """Run the selected failures again.

    Args:
        dry_run: only count them.
        minutes: spread them evenly over so many minutes, 0 to 1440. A further call with the same `count` and
            `failed_before` goes on with the same spread.
        canary: run one first, and the others when it has succeeded.
        key: of a canary; a second call with the same key starts no second replay.

    Raises:
        Refused: FORBIDDEN, INVALID, COUNT_DIFFERS, HELD, BROKER_AWAY or DATABASE_AWAY. If some rows were done before,
            `extra` has their ids.
    """
    actor.must(REPUBLISH)
    if not 0 <= minutes <= 24 * 60:
        raise Refused.value("minutes", _("Enter a whole number of minutes from 0 to 1440."))
    rows, so_far = _counted(actor, wanted, dry_run)
    if dry_run or not so_far.matching:
        return so_far
    if canary:
        made = start_replay(actor, rows, wanted.words, minutes, key or uuid.uuid4())
        sent = () if made.canary is None else (made.canary,)
        return replace(so_far, done=sent, left=count_of_state(rows), replay=made.pk)
    if not minutes:
        return _act(actor, rows, lambda ids, _done: actions.republish(ids, own_broker(), actor.by), "republish", so_far)
    total = wanted.count if wanted.count is not None else len(set(wanted.ids or ()))
    left = so_far.matching
    spread = Spread.going_on(so_far.failed_before, timedelta(minutes=minutes), total, left, clock.now())

    def act(ids: list[int], done: int) -> list[int]:
        first = spread.at(spread.total - left + done, clock.now())
        return actions.republish(ids, own_broker(), actor.by, first=first, step=spread.step)

    return _act(actor, rows, act, f"republish, spread over {minutes} minutes", so_far)


def discard(actor: Actor, wanted: Selection, reason: str, *, dry_run: bool = False) -> Done:
    """Take the selected failures out of the inbox. Their rows stay, with the reason.

    Raises:
        Refused: as for `republish`.
    """
    actor.must(DISCARD)
    text = visible_text(reason.strip(), REASON_LIMIT)
    if not text and not dry_run:
        raise Refused.value("reason", _("Enter a reason. Without a reason, nothing is discarded."), "required")
    rows, so_far = _counted(actor, wanted, dry_run)
    if dry_run or not so_far.matching:
        return so_far

    def act(ids: list[int], _done: int) -> list[int]:
        return actions.discard(ids, actor.by, text, broker=own_broker())

    return _act(actor, rows, act, f"discard: {text}", so_far)


def _counted(actor: Actor, wanted: Selection, dry_run: bool) -> tuple[QuerySet[FailedExecution], Done]:
    before = wanted.failed_before or clock.now()
    rows = chosen(seen(actor), wanted.model_copy(update={"failed_before": before})).prefetch_related(None)
    missing = () if wanted.ids is None else tuple(sorted(set(wanted.ids) - set(rows.values_list("pk", flat=True))))
    refused, left_out = refused_executions(actor), 0
    if refused is not None:
        left_out = rows.filter(refused).count()
        rows = rows.exclude(refused)
    count = count_of_state(rows)
    if not dry_run and wanted.ids is None and (wanted.count is None or count > wanted.count):
        said = _("%(now)d match now; the request says %(said)s. Count them with a dry run, then give this count.")
        if wanted.count is None:
            said = _("%(now)d match now; the request gives no count. Count them with a dry run, then give this count.")
        facts = {"now": count, "said": wanted.count}
        problem = Problem("count", "count", said % facts)
        raise Refused(Code.COUNT_DIFFERS, said % facts, (problem,), {"count": count, "failed_before": before})
    return rows, Done(count, (), count, 0, left_out, before, missing=missing)


def _act(
    actor: Actor, rows: QuerySet[FailedExecution], act: Callable[[list[int], int], list[int]], said: str, so_far: Done
) -> Done:
    """Act on the rows in chunks, and write an entry of the history for each row that left the inbox."""
    moved: list[int] = []
    refused = 0
    try:
        for chunk in in_chunks(rows.only("pk")):
            ids = [row.pk for row in chunk]
            done = act(ids, len(moved))
            moved += done
            left = SchedulerExecution.objects.filter(pk__in=ids)
            gone = left.filter(pk__in=done).only("type", "target_name", "execution_key", "group")
            record(actor, gone, said)
            if len(done) < len(ids):
                refused += left.filter(state=State.FAILED.value).count()
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held)), extra={"done": moved}) from None
    except BrokerError as error:
        raise broker_away(error, moved) from None
    except (DatabaseError, InterfaceError) as error:
        raise database_away(error, moved) from None
    return replace(so_far, done=tuple(moved), left=count_of_state(rows), refused=refused)
