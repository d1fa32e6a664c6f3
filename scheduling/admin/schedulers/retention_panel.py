"""A read-only panel that says how long the runs of a schedule are kept."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.schedulers.panels import refused
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.retention_words import always_kept, days_words, retention_list, retention_sentences
from scheduling.conf import get_conf
from scheduling.core.retention import RetentionInvalid
from scheduling.models import Scheduler


def inherited_retention() -> dict[str, str]:
    """Maps the name of each retention field to a hint: the value that an empty field inherits."""
    policy = get_conf().retention()
    values = {
        "keep_success_days": policy.success_days,
        "keep_failed_days": policy.failed_days,
        "keep_output_days": policy.output_days,
        "keep_count": policy.count,
    }
    none = {"keep_output_days": _("inherited: with the run"), "keep_count": _("inherited: no limit")}
    return {
        name: none.get(name, _("inherited: never")) if value is None else _("inherited: %(value)s") % {"value": value}
        for name, value in values.items()
    }


def retention_panel(scheduler: Scheduler, request: HttpRequest) -> SafeString:
    """The rules that apply to the runs of a schedule, as HTML."""
    conf = get_conf()
    base = conf.retention()
    try:
        policy = scheduler.retention_policy(base)
    except RetentionInvalid as error:
        return refused(_("Nothing of this schedule is removed, because its retention cannot be used: %s") % error)
    said = _("These values come from the settings.")
    if policy != base:
        said = _("This schedule's own values apply before those of the settings.")
    sentences = retention_sentences(policy)
    if scheduler.date_time is not None and conf.retention_one_time_days is not None:
        text = _("This schedule is removed %(days)s after its date, when its runs have ended. Its runs stay.")
        sentences.append(text % {"days": days_words(conf.retention_one_time_days)})
    link: SafeString | str = ""
    if request.user.has_perm("scheduling.view_schedulerexecution"):
        address = admin_url("scheduling_schedulerexecution_retention")
        link = format_html('<p><a href="{}">{}</a></p>', address, _("What the next clean-up removes"))
    return format_html(
        '<div class="sch-panel"><p>{} {}</p><ul>{}</ul>{}</div>', said, always_kept(), retention_list(sentences), link
    )
