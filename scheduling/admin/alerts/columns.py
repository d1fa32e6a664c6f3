"""The columns of the list of alerts."""

from __future__ import annotations

from django.contrib import admin
from django.utils import timezone as clock
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.alerts.told import is_muted, told_cell
from scheduling.admin.common.pages import Pages
from scheduling.admin.ui.badges import severity_badge
from scheduling.admin.ui.times import EMPTY, duration_between, relative_time, time_tag
from scheduling.core.text import visible_text
from scheduling.models import Alert
from scheduling.models.time_words import format_span

CELL_CHARS = 200


class AlertColumns(Pages):
    """The cells of the list."""

    @admin.display(description=_("Severity"))
    def severity_shown(self, row: Alert) -> SafeString:
        return severity_badge(row.severity)

    @admin.display(description=_("Alert"))
    def what(self, row: Alert) -> SafeString:
        """The subject, and below it the rule."""
        subject = visible_text(row.subject, CELL_CHARS) or EMPTY
        return format_html(
            '{}<span class="sch-below sch-quiet">{}</span>', subject, visible_text(row.rule_name, CELL_CHARS)
        )

    @admin.display(description=_("What was seen"))
    def seen_shown(self, row: Alert) -> SafeString:
        return format_html('<span class="sch-message">{}</span>', visible_text(row.seen, CELL_CHARS))

    @admin.display(description=_("Since"))
    def since(self, row: Alert) -> SafeString:
        """When it began, and below it how long it lasts or has lasted."""
        return format_html('{}<span class="sch-below sch-quiet">{}</span>', time_tag(row.started_at), lasted(row))

    @admin.display(description=_("Told"))
    def told(self, row: Alert) -> SafeString | str:
        return told_cell(row, clock.now())

    @admin.display(description=_("Acknowledged"))
    def acknowledged(self, row: Alert) -> SafeString | str:
        """Who has taken notice, and when; and until when it is muted."""
        lines: list[SafeString] = []
        if row.acknowledged_at is not None:
            by = visible_text(row.acknowledged_by, 60) or EMPTY
            lines.append(format_html("{} {}", by, relative_time(row.acknowledged_at)))
        if is_muted(row, clock.now()) and row.is_open:
            lines.append(format_html("{} {}", _t("muted until"), time_tag(row.muted_until)))
        if not lines:
            return EMPTY
        return format_html_join("", '<span class="sch-told">{}</span>', ((line,) for line in lines))


def lasted(row: Alert) -> str:
    """How long it lasts, or has lasted."""
    if row.ended_at is not None:
        return _t("over after %(time)s") % {"time": duration_between(row.started_at, row.ended_at)}
    return _t("for %(time)s") % {"time": format_span((clock.now() - row.started_at).total_seconds())}
