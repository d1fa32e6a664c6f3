"""The batch in which an attempt was called: how many runs it had, which one led it, and what it has printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.executions.output import Shown, tail
from scheduling.admin.ui.badges import outcome_badge
from scheduling.admin.ui.links import execution_link
from scheduling.core.batch import LARGEST
from scheduling.core.lifecycle import State
from scheduling.core.words import grouped
from scheduling.handlers.targets import handler_of_execution
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.visibility import Visibility
from scheduling.operations.output_filter import Wanted

SHOWN_LINES = 500

SHOWN_RUNS = 20
"""So many other runs of a batch are linked, those that have not succeeded first."""

APART = 2 * LARGEST
"""One statement inserts the attempts of a batch (`record_attempts`), so their keys are not further apart than this,
even if other consumers insert attempts at the same time. There is no index of the leader's column."""


@dataclass(frozen=True)
class Leader:
    """The attempt that has the output of a batch.

    Args:
        size: the number of runs of the batch; None while it is called.
    """

    execution: int
    attempt: int
    size: int | None


def batch_context(
    row: SchedulerExecution, ended: Sequence[Attempt], attempt: int | None, visible: Visibility
) -> dict[str, Any] | None:
    """The template context of the part about the batch; None if the attempt was called by itself.

    All runs of a batch have one group, so the leader is seen with each of them. Plain SQL may write another leader: one
    that is hidden is neither named nor shown.

    Args:
        ended: the attempts that have ended, the newest first.
        attempt: the chosen attempt; None: the last one.
    """
    number = row.attempt if attempt is None else attempt
    if row.state == State.RUNNING.value and number == row.attempt:
        leader = _running(row, visible)
    else:
        leader = next((_recorded(one) for one in ended if one.number == number), None)
    if leader is None:
        return None
    seen = visible.executions().filter(pk=leader.execution).values_list("group_id", flat=True)
    is_seen = leader.execution == row.pk or row.group_id in seen
    output = Shown()
    if is_seen and leader.execution != row.pk:
        output = tail(leader.execution, Wanted(leader.attempt), SHOWN_LINES)
    others = _others(leader, ended, visible) if leader.execution == row.pk and leader.size is not None else []
    return {"sentence": _sentence(row, leader, is_seen=is_seen), "output": output, **_shown_others(others)}


def _others(leader: Leader, ended: Sequence[Attempt], visible: Visibility) -> list[tuple[int, str]]:
    """The other executions of the batch that a leader has led, with the outcomes of their attempts."""
    own = next((one.pk for one in ended if one.number == leader.attempt), None)
    if own is None:
        return []
    rows = Attempt.objects.filter(
        pk__range=(own - APART, own + APART), batch_leader=leader.execution, batch_attempt=leader.attempt,
        execution__in=visible.executions().values("pk"),
    )  # fmt: skip
    found = rows.exclude(execution=leader.execution).order_by().values_list("execution", "outcome")
    succeeded = Attempt.Outcome.SUCCEEDED.value
    return sorted(found[:LARGEST], key=lambda other: (other[1] == succeeded, other[0]))


def _shown_others(others: Sequence[tuple[int, str]]) -> dict[str, Any]:
    shown = [(execution_link(pk), outcome_badge(outcome)) for pk, outcome in others[:SHOWN_RUNS]]
    return {"others": shown, "further": len(others) - len(shown)}


def _recorded(attempt: Attempt) -> Leader | None:
    """What the attempt's row says. Plain SQL can write any value, and SQLite stores any type."""
    values = attempt.batch_leader, attempt.batch_attempt, attempt.batch_size
    if any(type(value) is not int or value < 1 for value in values):
        return None
    return Leader(*values)  # type: ignore[arg-type]


def _running(row: SchedulerExecution, visible: Visibility) -> Leader | None:
    """The leader of a batch that goes on: the first run of the same process. None until the batch is called."""
    handler = handler_of_execution(row)
    if handler is None or handler.batch is None or row.pid is None:
        return None
    rows = visible.executions().filter(
        state=State.RUNNING.value, consumer=row.consumer, pid=row.pid, type=row.type, target_id=row.target_id
    )
    found = rows.order_by("pk").values_list("pk", "attempt").first()
    return Leader(*found, size=None) if found is not None and found[0] != row.pk else None


def _sentence(row: SchedulerExecution, leader: Leader, *, is_seen: bool) -> str:
    if leader.size is None:
        return format_html(_("It is called in a batch that {} leads."), execution_link(leader.execution))
    if not is_seen:
        return _("It was called in a batch of %(count)s runs.") % {"count": grouped(leader.size)}
    if leader.execution == row.pk:
        text = _("It has led a batch of %(count)s runs. Its output is that of all of them.")
        return text % {"count": grouped(leader.size)}
    return format_html(
        _("It was called in a batch of {} runs, which {} led. Files and used resources are recorded there."),
        grouped(leader.size),
        execution_link(leader.execution),
    )
