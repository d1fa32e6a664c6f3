"""Finds, makes, changes and deletes schedules in the name of an actor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib.admin.models import ADDITION, DELETION
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, QuerySet, RestrictedError
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from scheduling.core.targets import TARGETS
from scheduling.core.text import is_number, visible_text
from scheduling.handlers.permission import refusal
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler
from scheduling.models.after import AFTER_COLUMNS
from scheduling.models.author import authored
from scheduling.models.calendar import LONG
from scheduling.models.own_retention import RETENTION_COLUMNS
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.run_bounds import RUN_BOUNDS
from scheduling.operations.actor import Actor
from scheduling.operations.audit import deletion_edits, edits_since, record, snapshot
from scheduling.operations.refused import Code, Refused, problems_of
from scheduling.operations.schedule_check import fill
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import locking

VIEW = ("scheduling.view_scheduler", "scheduling.change_scheduler")
ADD, CHANGE, DELETE = (f"scheduling.{verb}_scheduler" for verb in ("add", "change", "delete"))

EDITED = (
    "name", "description", *TARGETS, "params", "schedule", "date_time", "timezone", "calendar", "status",
    "pause_reason", "overlap", "stay_alive", "after", *AFTER_COLUMNS, "queue", "priority", "time_limit",
    "language", "user", "group", "ping_url",
    *RETRY_COLUMNS, *RETENTION_COLUMNS, *TIMING_COLUMNS, *RUN_BOUNDS,
)  # fmt: skip
"""The fields that a client may give. An edit of one of them changes the version."""

RECORDED = (*EDITED, "source_file")
"""The fields whose edits the history has. A new owner changes the version, too."""

RELATED = (*TARGETS, "calendar", "user", "group", "after")
"""The fields that name a row of another table."""

AMBIGUOUS_SHOWN = 5


def seen(actor: Actor) -> QuerySet[Scheduler]:
    """The schedules that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(*VIEW)
    return actor.visible.schedules()


def with_related(rows: QuerySet[Scheduler]) -> QuerySet[Scheduler]:
    """The schedules with the rows that they name, but without the entries of calendars, which may be long."""
    return rows.select_related(*RELATED).defer(*(f"calendar__{name}" for name in LONG))


def by_id(actor: Actor, pk: int) -> Scheduler:
    """The schedule with this id.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND, also for a schedule that the actor does not see.
    """
    found = with_related(seen(actor)).filter(pk=pk).first()
    if found is None:
        raise Refused(Code.NOT_FOUND, _("There is no schedule %(id)s, or you may not see it.") % {"id": pk})
    return found


def find(actor: Actor, text: str, *, exact: bool = False) -> Scheduler:
    """The schedule with this id or else this name, or the only one whose name or description begins with the text.

    Args:
        exact: a beginning is not enough. The refusal then names the schedules that begin so.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or AMBIGUOUS.
    """
    rows = with_related(seen(actor)).order_by("pk")
    if is_number(text) and (row := rows.filter(pk=int(text)).first()) is not None:
        return row
    if text and text.isprintable():
        named = [row for row in rows.filter(name=text)[:2] if row.name == text]  # MariaDB ignores spaces at the end
        if named:
            return named[0]
        for column in () if is_number(text) else ("name__startswith", "description", "description__istartswith"):
            found = list(rows.filter(**{column: text})[: AMBIGUOUS_SHOWN + 1])
            if len(found) == 1 and not exact:
                return found[0]
            if found:
                raise _beginnings(text, found, exact)
    said = _("There is no schedule “%(name)s”, or you may not see it.") % {"name": visible_text(text, 100)}
    raise Refused(Code.NOT_FOUND, said)


def _beginnings(text: str, found: list[Scheduler], exact: bool) -> Refused:
    names = ", ".join(f"{row.pk} ({visible_text(row.name or row, 60)})" for row in found[:AMBIGUOUS_SHOWN])
    more = "" if len(found) <= AMBIGUOUS_SHOWN else ", …"
    code, said = Code.AMBIGUOUS, _("Several schedules begin with “%(name)s”: %(found)s. Give an id.")
    if exact:
        code = Code.NOT_FOUND
        said = _("No schedule has the id or name “%(name)s”. These begin so: %(found)s. Give an id or a whole name.")
    facts = {"name": visible_text(text, 100), "found": names + more}
    return Refused(code, said % facts, extra={"ids": [row.pk for row in found[:AMBIGUOUS_SHOWN]]})


def version(row: Scheduler) -> str:
    """A text that changes with each value that a client may give, and with the owning file. It tells no secret."""
    values = {name: getattr(row, name) for name in RECORDED if name not in RELATED}
    values |= {f"{name}_id": getattr(row, f"{name}_id") for name in RELATED}
    text = json.dumps([row.pk, values], cls=DjangoJSONEncoder, sort_keys=True)
    return salted_hmac("scheduling.schedule.version", text, algorithm="sha256").hexdigest()[:32]


def make(actor: Actor, values: Mapping[str, Any], *, source: str = "", note: str = "", reason: str = "") -> Scheduler:
    """Make a schedule. It belongs to the actor's user, unless the values name another user.

    Args:
        values: see `ScheduleValues`.
        source: the schedule file that owns it; empty: none.
        note: the text of the entry in the history.
        reason: why, for the revision.

    Raises:
        Refused: FORBIDDEN, INVALID or SCHEDULE_RETRY_POLICY_INVALID.
    """
    actor.must(ADD)

    def work() -> Scheduler:
        row = Scheduler(source_file=source)
        fill(actor, row, values)
        if row.user is None and "user" not in values:
            row.user = actor.user
        row.paused_by = actor.get_username()
        with transaction.atomic(), authored(actor.author(reason, file=source)):
            _save(row, force_insert=True)
            edits = edits_since(snapshot(Scheduler(), RECORDED), row, handler_of(row), None)
            record(actor, [row], note, edits, ADDITION)
        return row

    return again_after_conflicts(work)


def change(
    actor: Actor,
    pk: int,
    values: Mapping[str, Any],
    expected: str | None = None,
    *,
    source: str | None = None,
    note: str = "",
    reason: str = "",
    undoes: int | None = None,
) -> Scheduler:
    """Change a schedule. Of two changes at once that expect the same version, one is refused.

    Args:
        expected: the version that the client has read; None: any.
        source: the schedule file that owns it from now on; None: its owner stays.
        note: the text of the entry in the history.
        reason: why, for the revision.
        undoes: the number of the revision that the change takes back.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, CHANGED (`extra` has both versions), INVALID or SCHEDULE_RETRY_POLICY_INVALID.
    """
    actor.must(CHANGE)

    def work() -> Scheduler:
        with transaction.atomic(), authored(actor.author(reason, file=source or "", undoes=undoes)):
            row = locked(actor, pk, expected)
            former, code = snapshot(row, RECORDED), handler_of(row)
            fill(actor, row, values)
            if source is not None:
                row.source_file = source
            if refused := refusal(actor, row):  # the new target's code may ask for a permission
                raise Refused(Code.FORBIDDEN, refused)
            row.paused_by = actor.get_username()
            edits = edits_since(former, row, handler_of(row), code)
            if edits:
                _save(row)
                record(actor, [row], note, edits)
        return row

    return again_after_conflicts(work)


def delete(
    actor: Actor, pk: int, expected: str | None = None, *, note: str = "", source: str = "", reason: str = ""
) -> None:
    """Delete a schedule. Its runs stay. The history keeps its values.

    Args:
        note: the text of the entry in the history.
        source: the schedule file that does not hold it any more; empty: none.
        reason: why, for the revision.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or CHANGED.
    """
    actor.must(DELETE)

    def work() -> None:
        with transaction.atomic(), authored(actor.author(reason, file=source)):
            row = locked(actor, pk, expected)
            record(actor, [row], note, deletion_edits(row, handler_of(row)), DELETION)
            try:
                row.delete()
            except RestrictedError as error:  # its text says what to do
                raise Refused(Code.CONFLICT, str(error.args[0])) from None
            except ProtectedError:
                raise Refused(Code.CONFLICT, _("Other rows need this schedule, so it cannot be deleted.")) from None

    again_after_conflicts(work)


def locked(actor: Actor, pk: int, expected: str | None = None) -> Scheduler:
    """The schedule, locked until the transaction ends.

    Raises:
        Refused: NOT_FOUND; FORBIDDEN if its code asks for a permission; CHANGED if its version is not `expected`.
    """
    locking(actor.visible.schedules().filter(pk=pk)).values_list("pk").first()
    row = by_id(actor, pk)
    if refused := refusal(actor, row):
        raise Refused(Code.FORBIDDEN, refused)
    if expected is not None and version(row) != expected:
        said = _("The schedule has changed since you read it. Nothing was changed. Read it again.")
        raise Refused(Code.CHANGED, said, extra={"row": row, "expected": expected, "current": version(row)})
    return row


def _save(row: Scheduler, **options: Any) -> None:
    try:
        with transaction.atomic():
            row.save(**options)
    except ValidationError as error:
        raise Refused.invalid(problems_of(error)) from None
    except IntegrityError:
        raise Refused.value("name", _("Another schedule has this name."), "unique") from None
