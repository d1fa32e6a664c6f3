"""What a Scheduler's columns lead to, read-only: its code, the sentence, the runs to come, the table of retries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.chips import chip, icon
from scheduling.admin.text import shown
from scheduling.admin.times import length, spelled
from scheduling.conf import get_conf
from scheduling.contract import problem
from scheduling.core.cron import CronError, next_after, parse, zone
from scheduling.core.describe import describe
from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid, delays
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.registry import Handler, UnknownHandler, find

NEXT_RUNS = 10

RETRY_FIELDS = {
    "max_retries": "max_retries",
    "retry_delay_ms": "delay_ms",
    "retry_multiplier": "multiplier",
    "retry_max_delay_ms": "max_delay_ms",
}
"""By the form's field, what of a policy it overrides; jitter is a choice of its own."""


def handler_of(scheduler: Scheduler) -> Handler | None:
    """The code behind the target, if it is registered here."""
    return handler_behind(scheduler.target_type, scheduler.target)


def handler_behind(type_: str, target: Model | None) -> Handler | None:
    """The code that a target row names, if it is registered here."""
    return handler_named(type_, getattr(target, "handler_name", ""))


def handler_named(type_: str, name: str) -> Handler | None:
    """Registered code by its name, or None."""
    try:
        return find(type_, name)
    except UnknownHandler:
        return None


def handler_of_execution(row: SchedulerExecution) -> Handler | None:
    """The code that an execution names; all reminders share one."""
    return handler_named(row.type, "send" if row.type == "reminder" else row.target_name)


def params_problem(scheduler: Scheduler) -> str:
    """Why the params do not fit the target's code; also when plain SQL has spoilt the target's own."""
    target = scheduler.target
    if target is not None and not isinstance(getattr(target, "params", {}), dict):
        return _("The target's own parameters are not a JSON object; mend them first.")
    if not isinstance(scheduler.params, dict):
        return _("Parameters are a JSON object.")
    # Names of unknown parameters are quoted in it.
    return shown(problem(scheduler), 1_000)


def inherited_policy(scheduler: Scheduler) -> tuple[RetryPolicy, str]:
    """The policy that empty fields take their values from, and where it comes from."""
    handler = handler_of(scheduler)
    if handler is not None and handler.retry is not None:
        return handler.retry, _("the target's code")
    return get_conf().retry, _("the settings")


def inherited_hints(base: RetryPolicy) -> dict[str, str]:
    """What empty fields of the retry policy stand for, by the field's name in the form."""
    hints = {
        name: _("inherited: %(value)s") % {"value": f"{getattr(base, attribute):.12g}"}
        for name, attribute in RETRY_FIELDS.items()
    }
    return {**hints, "retry_jitter": _("Inherited: on") if base.jitter else _("Inherited: off")}


def in_words(scheduler: Scheduler) -> str:
    """The schedule as a sentence.

    Raises:
        CronError, ZoneError: only plain SQL can bring a row there.
    """
    if scheduler.date_time is not None:
        return _("Once at %(instant)s") % {"instant": spelled(scheduler.date_time, zone(scheduler.zone_name))}
    return describe(scheduler.schedule)


def upcoming_runs(scheduler: Scheduler, now: datetime, count: int = NEXT_RUNS) -> list[datetime]:
    """At most `count` next occurrences, in UTC.

    Raises:
        CronError, ZoneError: with a sentence.
    """
    if scheduler.date_time is not None:
        return [scheduler.date_time] if scheduler.date_time > now else []
    cron, found = parse(scheduler.schedule), list[datetime]()
    for _number in range(count):
        try:
            found.append(next_after(cron, scheduler.zone_name, found[-1] if found else now))
        except CronError:
            break  # nothing fires any more: what was found is all
    return found


def retry_panel(scheduler: Scheduler) -> SafeString | str:
    """The table of attempts that the policy in force gives: when each starts after the failure before it."""
    base, source = inherited_policy(scheduler)
    try:
        policy = scheduler.retry_policy(base)
    except RetryPolicyInvalid as error:
        return refused(error)
    own = policy != base
    text = _("This schedule's own policy over that of %(source)s.") if own else _("Inherited from %(source)s.")
    attempts = policy.max_retries + 1
    count = ngettext("%(count)d attempt at most.", "%(count)d attempts at most.", attempts) % {"count": attempts}
    total, rows = 0, [(1, _("at once"), "")]
    for number, delay in enumerate(delays(policy), 2):
        total += delay
        rows.append((number, length(delay / 1000), length(total / 1000)))
    jitter = _("Jitter: each wait is drawn from 50 to 100 % of what stands here.") if policy.jitter else ""
    # Another target has another policy: the script lays these on the fields again.
    hints = format_html_join("", '<span hidden data-live-hint="{}">{}</span>', inherited_hints(base).items())
    return format_html(
        '<div class="sch-panel" data-live-said="{}">{}<p>{} {} {}</p>{}</div>',
        count,
        hints,
        text % {"source": source},
        count,
        jitter,
        table(
            _("Attempts"),
            [_("Attempt"), _("Wait before it"), _("Waits in total")],
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            rows,
        ),
    )


def plan_chip(scheduler: Scheduler) -> SafeString:
    """That the row cannot be planned, with the reason as its title."""
    return chip(_("cannot be planned"), "warn", "bad", scheduler.plan_error)


def refused(error: object) -> SafeString:
    """A panel that only says why there is nothing to show."""
    said = str(error)
    return format_html(
        '<div class="sch-panel" data-live-said="{}"><p class="sch-note sch-note-bad">{} {}</p></div>',
        said,
        icon("warn"),
        said,
    )


def table(caption: object, head: list[Any], row: str, rows: Iterable[Sequence[object]]) -> SafeString:
    """A small table; `row` is the HTML of a line with a place for each value of `rows`."""
    return format_html(
        '<div class="sch-scroll"><table class="sch-table"><caption class="sch-hidden">{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        caption,
        format_html_join("", '<th scope="col">{}</th>', ((word,) for word in head)),
        format_html_join("", row, rows),
    )
