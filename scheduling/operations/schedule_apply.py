"""Carries out the plan of a schedule file: the whole plan or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db import transaction
from django.utils.translation import gettext as _

from scheduling.operations import calendar_files, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_order import ordered
from scheduling.operations.schedule_steps import Act, Plan, Step, of_entry
from scheduling.processes.conflicts import again_after_conflicts


def carry_out(actor: Actor, found: Plan, count: int | None = None, reason: str = "") -> None:
    """Carry out a plan in one transaction. If one step cannot be done, nothing is done.

    Args:
        count: the number of deletions that a person has confirmed; None: not confirmed.
        reason: why, for the revisions.

    Raises:
        Refused: FORBIDDEN, COUNT_DIFFERS, CHANGED if a row has changed since the plan, otherwise INVALID. `problems`
            names each entry that cannot be carried out.
    """
    if found.problems:
        raise Refused.invalid(found.problems)
    confirm(found, count)
    for act, permission in ((Act.MAKE, schedules.ADD), (Act.CHANGE, schedules.CHANGE), (Act.DELETE, schedules.DELETE)):
        if found.of(act):
            actor.must(permission)

    def work() -> None:
        with transaction.atomic():
            refused = [*_calendars(actor, found), *_schedules(actor, found, reason)]
            if refused:
                raised = Refused.invalid(problem for name, one in refused for problem in of_entry(name, one))
                raised.code = Code.CHANGED if any(one.code == Code.CHANGED for _n, one in refused) else raised.code
                raise raised

    again_after_conflicts(work)


def _calendars(actor: Actor, found: Plan) -> Iterator[tuple[str, Refused]]:
    """Make and change the calendars. Yields those that were refused."""
    for step in found.calendars:
        try:
            calendar_files.carry_out(actor, step, _note(found.source))
        except Refused as refused:
            yield f"{calendar_files.KIND} {step.name}", refused


def _schedules(actor: Actor, found: Plan, reason: str) -> Iterator[tuple[str, Refused]]:
    for step in ordered(found.steps):
        try:
            _DO[step.act](actor, step, found.source, reason)
        except Refused as refused:
            yield step.name, refused


def confirm(found: Plan, count: int | None) -> None:
    """Compare the number of deletions with the number that a person has confirmed.

    Args:
        count: None: not confirmed.

    Raises:
        Refused: COUNT_DIFFERS; `extra` has the `count` that is asked for.
    """
    deleted = len(found.of(Act.DELETE))
    if count is None and found.needs_count:
        said = _("This would delete %(count)s schedules, all or most of those that the file owns. Confirm the number.")
    elif count is not None and count != deleted:
        said = _("This would delete %(count)s schedules, which is not the number that you have confirmed.")
    else:
        return
    raise Refused(Code.COUNT_DIFFERS, said % {"count": deleted}, extra={"count": deleted})


def _make(actor: Actor, step: Step, source: str, reason: str) -> None:
    schedules.make(actor, step.values or {}, source=source, note=_note(source), reason=reason)


def _change(actor: Actor, step: Step, source: str, reason: str) -> None:
    values = step.values or {}
    schedules.change(actor, step.pk or 0, values, step.version, source=source, note=_note(source), reason=reason)


def _delete(actor: Actor, step: Step, source: str, reason: str) -> None:
    schedules.delete(actor, step.pk or 0, step.version, note=_note(source), source=source, reason=reason)


def _note(source: str) -> str:
    return f"schedule file {source}"


_DO: dict[Act, Callable[[Actor, Step, str, str], None]] = {
    Act.MAKE: _make,
    Act.CHANGE: _change,
    Act.DELETE: _delete,
    Act.UNCHANGED: lambda actor, step, source, reason: None,
}
