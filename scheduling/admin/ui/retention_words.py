"""Says in words what a retention policy keeps."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.formats import number_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.retention import RetentionPolicy


def days_words(days: int) -> str:
    """A number of days, such as `30 days`."""
    return ngettext("%(count)s day", "%(count)s days", days) % {"count": number_format(days, force_grouping=True)}


def retention_sentences(policy: RetentionPolicy) -> list[str]:
    """What is removed and when, one sentence for each rule."""
    found = []
    if policy.success_days == policy.ended_days:
        found += _after(_("Runs that ended are removed %(days)s after their end."), policy.ended_days)
    else:
        found += _after(_("Successful runs are removed %(days)s after their end."), policy.success_days)
        text = _("Cancelled, discarded and skipped runs are removed %(days)s after their end.")
        found += _after(text, policy.ended_days)
    found += _after(_("Failures leave the inbox %(days)s after their end."), policy.failed_days) or [
        _("Failures stay in the inbox until an operator acts.")
    ]
    found += _after(_("Output and files are removed %(days)s after the run."), policy.output_days) or [
        _("Output and files are removed together with their run.")
    ]
    if policy.count is not None:
        text = ngettext(
            "Only the newest run is kept, and failures.", "Only the newest %(count)s runs are kept, and failures.",
            policy.count,
        )  # fmt: skip
        found.append(text % {"count": number_format(policy.count, force_grouping=True)})
    return found


def always_kept() -> str:
    """What no rule removes, as a sentence."""
    return _(
        "Runs that wait or run are always kept. So are runs within the catch-up window, and the last result of a "
        "schedule with a cron expression."
    )


def retention_list(sentences: Sequence[str]) -> SafeString:
    """Sentences as an HTML list."""
    return format_html_join("", "<li>{}</li>", ((text,) for text in sentences))


def _after(text: str, days: int | None) -> list[str]:
    return [] if days is None else [text % {"days": days_words(days)}]
