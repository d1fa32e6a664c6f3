"""Needs attention: what is wrong now, each with a sentence that says what to do, and the way there.

Every question is asked through an index or of a small table, and answered with a few rows: the list is
read by somebody who is in a hurry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.dashboard.figures import Count, count
from scheduling.admin.dashboard.history import failures_in_a_row, last_runs
from scheduling.admin.dashboard.tiles import presence
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.parts import icon, relative, shown
from scheduling.core.lifecycle import State
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.models.scheduler import TARGETS
from scheduling.registry import handlers
from scheduling.targets import NAME_FIELD, target_model

MOST = 5
"""Rows of one kind that are named; the others are counted."""

OVERDUE_AFTER = timedelta(seconds=60)
GROWING_AFTER = timedelta(minutes=5)
IN_A_ROW = 3
LOOKED_AT = 1_000
"""Of the newest failures: a schedule that failed three times in a row lately is among them."""


@dataclass
class Problem:
    """One kind of trouble. `rows` are (address, name, what about it)."""

    title: str
    advice: str
    tone: str = "bad"
    icon: str = "warn"
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    more: Count = field(default_factory=lambda: Count(0))
    address: str = ""

    @property
    def mark(self) -> SafeString:
        """Its icon."""
        return icon(self.icon)


def attention(viewer: Viewer) -> dict[str, Any]:
    """All problems there are, the gravest first."""
    kinds = (_processes, _overdue, _growing, _unplanned, _unregistered, _failing, _silent)
    return {"problems": [problem for kind in kinds for problem in kind(viewer)]}


def _processes(viewer: Viewer) -> Iterable[Problem]:
    found = presence(viewer.now)
    address = viewer.list_of("process")
    if not found[Process.Kind.PRODUCER.value][0]:
        yield Problem(
            _("No producer is alive"),
            _("Nothing that falls due is claimed. Start one: manage.py run_scheduler"),
            address=address,
        )
    consumers = found[Process.Kind.CONSUMER.value][0]
    # Before its first heartbeat a consumer has not said which queue it serves.
    queues = {(row.info if isinstance(row.info, dict) else {}).get("queue", "") for row in consumers}
    if not consumers:
        yield Problem(
            _("No consumer is alive"), _("Nothing that waits is run. Start one: manage.py run_worker"), address=address
        )
    elif "standalone" not in queues and "" not in queues:
        waiting = Scheduler.objects.filter(stay_alive=True, status=True)
        if waiting.exists():
            yield Problem(
                _("No standalone consumer is alive"),
                _("Schedules that want one are not run. Start it: manage.py run_worker --standalone"),
                address=address,
            )


def _overdue(viewer: Viewer) -> Iterable[Problem]:
    rows = Scheduler.objects.filter(status=True, next_run_at__lt=viewer.now - OVERDUE_AFTER)
    yield from _schedules(
        viewer,
        rows.order_by("next_run_at", "pk"),
        Problem(_("Overdue"), _("Their time has passed and no producer has claimed them.")),
        lambda row: _("was due %(when)s") % {"when": relative(row.next_run_at, viewer.now)},
    )


def _growing(viewer: Viewer) -> Iterable[Problem]:
    # Queue by queue, for that is how the index (state, queue, wake_at) is read.
    for queue in SchedulerExecution.Queue:
        rows = SchedulerExecution.objects.filter(state=State.QUEUED.value, queue=queue.value)
        oldest = rows.order_by("wake_at", "pk").values_list("wake_at", flat=True).first()
        if oldest is not None and oldest < viewer.now - GROWING_AFTER:
            yield Problem(
                _("The queue “%(queue)s” grows") % {"queue": queue.label},
                _("%(count)s wait, the oldest since %(when)s. More consumers, or more concurrency, would help.")
                % {"count": count(rows), "when": relative(oldest, viewer.now)},
                tone="warn",
                icon="clock",
                address=viewer.list_of("schedulerexecution", state=State.QUEUED.value),
            )


def _unplanned(viewer: Viewer) -> Iterable[Problem]:
    broken = Scheduler.objects.filter(status=True).exclude(plan_error="")
    yield from _schedules(
        viewer,
        broken.order_by("pk"),
        Problem(_("Cannot be planned"), _("They do not run until somebody mends them.")),
        lambda row: shown(row.plan_error, 160),
    )
    # What plain SQL has just changed is planned by the next sweep: that is no trouble.
    idle = Scheduler.objects.filter(status=True, next_run_at__isnull=True, plan_error="", plan_stale=0)
    yield from _schedules(
        viewer,
        idle.order_by("pk"),
        Problem(
            _("On, but without a next run"), _("Nothing will fall due any more. Give them a time to come."), "warn"
        ),
        lambda row: shown(row.schedule, 80),
    )


def _unregistered(viewer: Viewer) -> Iterable[Problem]:
    for type_, column in NAME_FIELD.items():
        known = [each.name for each in handlers(type_)]
        # Of the small table of targets first: most often there is none, and no schedule is looked at.
        gone = dict(target_model(type_)._default_manager.exclude(**{f"{column}__in": known}).values_list("pk", column))
        if gone:
            rows = Scheduler.objects.filter(**{f"{type_}__in": list(gone)}, status=True)
            yield from _schedules(
                viewer,
                rows.order_by("pk"),
                Problem(
                    _("Code not registered here"),
                    _("Deploy the code that registers it, or choose another target."),
                ),
                lambda row, gone=gone, type_=type_: shown(gone.get(getattr(row, f"{type_}_id"), ""), 100),
            )


def _failing(viewer: Viewer) -> Iterable[Problem]:
    newest = SchedulerExecution.objects.filter(state=State.FAILED.value).order_by("-pk").values_list("scheduler")
    tally: dict[int, int] = {}
    for (pk,) in newest[:LOOKED_AT]:
        if pk is not None:
            tally[pk] = tally.get(pk, 0) + 1
    often = sorted((pk for pk in tally if tally[pk] >= IN_A_ROW), key=lambda pk: -tally[pk])[:50]
    streaks = {pk: failures_in_a_row(runs) for pk, runs in last_runs(often, 10).items()}
    failing = [pk for pk in often if streaks[pk] >= IN_A_ROW]
    yield from _schedules(
        viewer,
        Scheduler.objects.filter(pk__in=failing).order_by("pk"),
        Problem(
            _("Failing again and again"),
            _("Their last %(count)d runs or more failed. Look at the error, mend it, republish.") % {"count": IN_A_ROW},
            icon="cross",
        ),
        lambda row: (
            _("%(count)s in a row") % {"count": f"{streaks[row.pk]}+" if streaks[row.pk] >= 10 else streaks[row.pk]}
        ),
    )


def _silent(viewer: Viewer) -> Iterable[Problem]:
    silent = [row for _alive, rows in presence(viewer.now).values() for row in rows]
    if silent:
        yield Problem(
            _("Silent processes"),
            _("They stopped without saying so, or cannot reach the database. Their runs are taken over."),
            tone="warn",
            rows=[
                (
                    viewer.list_of("process", presence="silent"),
                    f"{row.get_kind_display()} {shown(row.container_id, 60)}",
                    _("last heard of %(when)s") % {"when": relative(row.heartbeat_at, viewer.now)},
                )
                for row in silent[:MOST]
            ],
            more=Count(max(0, len(silent) - MOST)),
            address=viewer.list_of("process", presence="silent"),
        )


def _schedules(viewer: Viewer, rows: QuerySet[Scheduler], problem: Problem, about: Any) -> Iterable[Problem]:
    found = list(rows.prefetch_related(*TARGETS)[: MOST + 1])
    if not found:
        return
    if len(found) > MOST:
        all_ = count(rows)
        problem.more = Count(all_.number - MOST, all_.capped)
    problem.rows = [(viewer.scheduler(row.pk), shown(row, 80), about(row)) for row in found[:MOST]]
    yield problem
