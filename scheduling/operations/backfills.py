"""Backfills in the name of an actor: what one would do, its start, and its pause, resume and cancel."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core import backfill
from scheduling.core.backfill import Options
from scheduling.core.deployment import Held
from scheduling.core.known_sentences import in_language
from scheduling.core.run_sentences import CANCELLED_BY, CANCELLED_BY_COMMAND
from scheduling.execution import backfill_sweep
from scheduling.execution.own_broker import own_broker
from scheduling.handlers.permission import refusal
from scheduling.models import Backfill
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.backfill_plan import BackfillPlan
from scheduling.operations.refused import Code, Refused
from scheduling.operations.times import format_minute
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.guard import guard

BACKFILL = "scheduling.backfill_scheduler"
State = Backfill.State


@dataclass(frozen=True)
class Started:
    """The backfills of one request, and whether this call has made them."""

    rows: list[Backfill]
    is_new: bool


def start(actor: Actor, plans: Sequence[BackfillPlan], options: Options, key: uuid.UUID) -> Started:
    """Start the backfills of these plans, one for each schedule. Producers make the executions.

    Args:
        key: a second call with the same key starts nothing.

    Raises:
        Refused: FORBIDDEN or HELD.
    """
    actor.must(BACKFILL)
    try:
        guard.check(own_broker(), may_claim=True)
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held))) from None
    now = clock.now()

    def work() -> Started:
        if known := list(_of(key)):
            return Started(known, False)
        made = [_row(actor, plan, options, key, now) for plan in plans]
        try:
            with transaction.atomic():
                for row, plan in zip(made, plans, strict=True):
                    row.save(force_insert=True)
                    record(actor, [row], f"start: {_said(row)}")
                    record(actor, [plan.schedule], f"backfill {row.pk}: {_said(row)}")
        except IntegrityError:
            if not (known := list(_of(key))):
                raise
            return Started(known, False)
        return Started(made, True)

    return again_after_conflicts(work)


def _of(key: uuid.UUID) -> QuerySet[Backfill]:
    return Backfill.objects.filter(request=key).defer("instants").order_by("pk")


def _row(actor: Actor, plan: BackfillPlan, options: Options, key: uuid.UUID, now: datetime) -> Backfill:
    """The row of one schedule. If there is nothing to make, the backfill is done at once."""
    done = plan.new == 0
    over = {"state": State.DONE, "position": plan.total, "existing": plan.total, "finished_at": now}
    return Backfill(
        request=key, scheduler=plan.schedule, group_id=plan.schedule.group_id,
        user_id=actor.pk, requested_by=actor.by, created_at=now, reason=options.reason,
        since=plan.since, until=plan.until, timezone=plan.schedule.zone_name, newest_first=options.newest_first,
        per_minute=options.per_minute, obey_overlap=options.obey_overlap, also_ran=options.also_ran,
        instants=backfill.stored(plan.instants, newest_first=options.newest_first), total=plan.total,
        **(over if done else {"next_at": now}),
    )  # fmt: skip


def _said(row: Backfill) -> str:
    zone = {"since": format_minute(row.since), "until": format_minute(row.until)}
    reason = f", {row.reason}" if row.reason else ""
    return f"{row.total} occurrences from {zone['since']} until {zone['until']}{reason}"


def seen(actor: Actor) -> QuerySet[Backfill]:
    """The backfills that the actor sees, without their lists of instants.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(*schedules.VIEW)
    return actor.visible.backfills().defer("instants")


def by_id(actor: Actor, pk: int) -> Backfill:
    """The backfill with this id.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND, also for a backfill that the actor does not see.
    """
    found = seen(actor).filter(pk=pk).first()
    if found is None:
        raise Refused(Code.NOT_FOUND, _("There is no backfill %(id)s, or you may not see it.") % {"id": pk})
    return found


def pause(actor: Actor, pk: int) -> Backfill:
    """Let it make no runs until it is resumed.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND; CONFLICT if it does not go on.
    """
    return _switched(actor, pk, State.RUNNING, State.PAUSED, "pause")


def resume(actor: Actor, pk: int) -> Backfill:
    """Let a paused backfill go on.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND; CONFLICT if it is not paused.
    """
    return _switched(actor, pk, State.PAUSED, State.RUNNING, "resume")


def cancel(actor: Actor, pk: int) -> Backfill:
    """End a backfill. The runs that it has made stay.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND; CONFLICT if it is over.
    """
    row = _own(actor, pk)
    with transaction.atomic():
        said = CANCELLED_BY.format(by=actor.by) if actor.by else CANCELLED_BY_COMMAND.format()
        if not backfill_sweep.end(row.pk, State.CANCELLED, said, clock.now()):
            raise Refused(Code.CONFLICT, _("The backfill is over already. Nothing was changed."))
        row = by_id(actor, pk)
        record(actor, [row], f"cancel: {row.position} of {row.total} done")
    return row


def _own(actor: Actor, pk: int) -> Backfill:
    """The backfill, which the actor may change.

    Raises:
        Refused: FORBIDDEN, also if the schedule's code asks for a permission; NOT_FOUND.
    """
    actor.must(BACKFILL)
    row = by_id(actor, pk)
    if said := refusal(actor, row):
        raise Refused(Code.FORBIDDEN, said)
    return row


def _switched(actor: Actor, pk: int, before: State, after: State, verb: str) -> Backfill:
    row = _own(actor, pk)
    with transaction.atomic():
        rows = Backfill.objects.filter(pk=row.pk, state=before.value)
        if not rows.update(state=after.value, next_at=clock.now(), note=""):
            said = _("The backfill is %(state)s. Nothing was changed.")
            raise Refused(Code.CONFLICT, said % {"state": by_id(actor, pk).get_state_display()})
        row = by_id(actor, pk)
        record(actor, [row], f"{verb}: {row.position} of {row.total} done")
    return row
