"""The fields of the form that say for which other schedule a schedule waits, and what its page says about that."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from scheduling.admin.common.time_span_field import TimeSpanField
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.links import link, scheduler_url
from scheduling.core.after import DEFAULT_WITHIN
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.models.after import LATES, NAME_CHARS, SPANS, predecessor_words
from scheduling.models.time_words import format_duration
from scheduling.models.visibility import EVERYTHING, visibility_of

MOST_NAMED = 5


class AfterFields(forms.ModelForm):
    """The part of the form of a schedule about its predecessor."""

    visible = EVERYTHING
    """What the user of the form sees."""

    after_within_seconds = TimeSpanField(
        unit=1_000,
        label=_("Waits at most"),
        help_text=_("Such as 30m or 12h, counted from the instant at which the run is due. At most 168h. Empty: 12h."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields.get("after")
        if field is None:
            return  # a user who may only view
        row: Scheduler = self.instance
        if row.after_id is not None and is_hidden(row, self.visible):
            # The user does not see the schedule, and so cannot choose another one in its place.
            field.disabled = True
            field.queryset = Scheduler.objects.filter(pk=row.after_id)
            field.label_from_instance = lambda other: predecessor_words(other, None)
            field.help_text = _("It belongs to another group. Only users who see it can change this.")
        else:
            field.label_from_instance = lambda other: visible_text(other, NAME_CHARS)

    def clean_after_within_seconds(self) -> int:
        """The time in seconds."""
        value: int | None = self.cleaned_data["after_within_seconds"]
        return DEFAULT_WITHIN if value is None else value


def is_hidden(row: Scheduler, visible: Any) -> bool:
    """Whether the schedule waits for one that exists and that the user does not see."""
    if row.after_id is None or not visible.is_limited:
        return False
    return (
        Scheduler.objects.filter(pk=row.after_id).exists() and not visible.schedules().filter(pk=row.after_id).exists()
    )


def seen_only(field: Any, request: HttpRequest) -> None:
    """Let a user choose only a schedule that the user sees. The form refuses any other one that a request names."""
    if (visible := visibility_of(request.user)).is_limited:
        field.queryset = visible.schedules()


def after_facts(row: Scheduler, viewer: Viewer) -> list[tuple[str, Any]]:
    """What the page of a schedule says about its predecessor, and about those that wait for it."""
    found = [(_t("Start after"), _after_words(row, viewer)), (_t("Others wait"), _successors_words(row, viewer))]
    return [(label, said) for label, said in found if said]


def _after_words(row: Scheduler, viewer: Viewer) -> str | SafeString:
    """For what the schedule waits, as a sentence with a link; empty if it waits for nothing."""
    if row.after_id is None:
        return ""
    other = Scheduler.objects.filter(pk=row.after_id).first()
    if other is None:
        return _t("a schedule that does not exist any more")
    facts = {
        "span": SPANS.get(row.after_span, visible_text(row.after_span, 20)),
        "time": format_duration(row.after_within_seconds),
        "late": LATES.get(row.after_late, visible_text(row.after_late, 20)),
    }
    how = _t("%(span)s. It waits at most %(time)s, then: %(late)s.") % facts
    if not viewer.visible.shows(other):
        return format_html("{}: {}", predecessor_words(other, None), how)
    return format_html("{}: {}", link(scheduler_url(other.pk), visible_text(other, NAME_CHARS)), how)


def _successors_words(row: Scheduler, viewer: Viewer) -> str | SafeString:
    """Which schedules wait for this one, as far as the user sees them; empty if none does."""
    rows = viewer.visible.schedules().filter(after=row.pk).order_by("pk")
    found = list(rows[: MOST_NAMED + 1])
    if not found:
        return ""
    number = len(found) if len(found) <= MOST_NAMED else rows.count()
    said = ngettext("%(count)d schedule waits for this one", "%(count)d schedules wait for this one", number)
    names = format_html_join(
        ", ", "{}", ((link(scheduler_url(one.pk), visible_text(one, NAME_CHARS)),) for one in found[:MOST_NAMED])
    )
    more = ", …" if number > MOST_NAMED else ""
    return format_html("{}: {}{}", said % {"count": number}, names, more)
