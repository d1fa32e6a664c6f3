"""Carries out the plan of a schedule file: the whole plan or nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.utils.translation import gettext as _

from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Problem, Refused
from scheduling.operations.schedule_order import ordered
from scheduling.operations.schedule_steps import Act, Plan, Step, of_entry
from scheduling.processes.conflicts import again_after_conflicts


def carry_out(actor: Actor, found: Plan, count: int | None = None) -> None:
    """Carry out a plan in one transaction. If one step cannot be done, nothing is done.

    Args:
        count: the number of deletions that a person has confirmed; None: not confirmed.

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
        problems: list[Problem] = []
        codes: set[str] = set()
        with transaction.atomic():
            for step in ordered(found.steps):
                try:
                    _DO[step.act](actor, step, found.source)
                except Refused as refused:
                    problems += of_entry(step.name, refused)
                    codes.add(refused.code)
            if problems:
                raised = Refused.invalid(problems)
                raised.code = Code.CHANGED if Code.CHANGED in codes else raised.code
                raise raised

    again_after_conflicts(work)


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


def _make(actor: Actor, step: Step, source: str) -> None:
    schedules.make(actor, step.values or {}, source=source, note=_note(source))


def _change(actor: Actor, step: Step, source: str) -> None:
    schedules.change(actor, step.pk or 0, step.values or {}, step.version, source=source, note=_note(source))


def _delete(actor: Actor, step: Step, source: str) -> None:
    schedules.delete(actor, step.pk or 0, step.version, note=_note(source), source=source)


def _note(source: str) -> str:
    return f"schedule file {source}"


_DO: dict[Act, Callable[[Actor, Step, str], None]] = {
    Act.MAKE: _make,
    Act.CHANGE: _change,
    Act.DELETE: _delete,
    Act.UNCHANGED: lambda actor, step, source: None,
}
