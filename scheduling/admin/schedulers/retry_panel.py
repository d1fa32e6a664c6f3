"""A read-only table of the attempts that a Scheduler's retry policy allows."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.schedulers.panels import refused, table
from scheduling.admin.ui.times import format_duration
from scheduling.core.retry import BOUNDS, RetryPolicy, RetryPolicyInvalid, delays, spelled
from scheduling.handlers.retry_policy import inherited_policy
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler
from scheduling.models.own_retry_policy import RETRY_COLUMNS

RETRY_NUMBERS = {column: attribute for column, attribute in RETRY_COLUMNS.items() if attribute in BOUNDS}
"""Maps each numeric retry column of Scheduler to an attribute of RetryPolicy."""


def inherited_hints(base: RetryPolicy) -> dict[str, str]:
    """Maps the name of each retry field to a hint: the value that an empty field inherits."""
    hints = {
        name: _("inherited: %(value)s") % {"value": spelled(attribute, getattr(base, attribute))}
        for name, attribute in RETRY_NUMBERS.items()
    }
    if base.backoff != "exponential":
        code = _("inherited: the target's code has its own delays; a value here replaces them")
        hints["retry_multiplier"] = code
        if not isinstance(base.backoff, str):
            hints["retry_delay_ms"] = code
    return {**hints, "retry_jitter": _("Inherited: on") if base.jitter else _("Inherited: off")}


def retry_panel(scheduler: Scheduler) -> SafeString | str:
    """The table as HTML. Each row has an attempt, the wait before the attempt, and the sum of the waits so far."""
    handler = handler_of(scheduler)
    base = inherited_policy(handler)
    source = _("the target's code") if handler is not None and handler.retry is not None else _("the settings")
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
        rows.append((number, format_duration(delay / 1000), format_duration(total / 1000)))
    jitter = _("Jitter: each wait is drawn from 50 to 100 % of what stands here.") if policy.jitter else ""
    # When the user chooses another target, a script copies these hints to the fields, because the other target may
    # have another retry policy.
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
            [_("Attempt"), _("Wait before"), _("Waits in total")],
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            rows,
        ),
    )
