"""The columns of the list of alert rules."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.alert_rules.words import threshold_words
from scheduling.admin.alerts.told import is_muted
from scheduling.admin.common.pages import Pages
from scheduling.admin.ui.badges import badge, severity_badge
from scheduling.admin.ui.times import EMPTY, time_tag
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import AlertRule

CELL_CHARS = 150


class RuleColumns(Pages):
    """The cells of the list."""

    @admin.display(description=_("Rule"))
    def name_shown(self, row: AlertRule) -> SafeString:
        """The name, and below it the kind."""
        kind = visible_text(row.get_kind_display(), CELL_CHARS)
        name = visible_text(row.name, CELL_CHARS) or EMPTY
        return format_html('{}<span class="sch-below sch-quiet">{}</span>', name, kind)

    @admin.display(description=_("On"))
    def on(self, row: AlertRule) -> SafeString:
        """Whether it is evaluated, and whether that worked the last time."""
        if not row.enabled:
            return badge(_t("off"), "pause", "off")
        if row.error:
            chip = badge(_t("cannot be evaluated"), "cross", "bad")
            return format_html(
                '{}<span class="sch-below sch-message">{}</span>',
                chip,
                for_reader(row.error, CELL_CHARS),
            )
        return badge(_t("on"), "check", "good")

    @admin.display(description=_("Threshold"))
    def threshold(self, row: AlertRule) -> str:
        return threshold_words(row)

    @admin.display(description=_("Of"))
    def scope(self, row: AlertRule) -> SafeString | str:
        """The schedule or the group that it is about."""
        if row.schedule is not None:
            name = visible_text(row.schedule, CELL_CHARS)
            if row.group_id is not None and row.schedule.group_id != row.group_id:
                said = _t("The schedule belongs to another group now, so the rule finds nothing.")
                return format_html('{}<span class="sch-below sch-error">{}</span>', name, said)
            return name
        if row.group is not None:
            return _t("group %(name)s") % {"name": visible_text(row.group, CELL_CHARS)}
        return _t("everything")

    @admin.display(description=_("Severity"))
    def severity_shown(self, row: AlertRule) -> SafeString:
        return severity_badge(row.severity)

    @admin.display(description=_("Tells"))
    def tells(self, row: Any) -> SafeString | str:
        """The channels, or a warning if there is none."""
        cell: SafeString | str = row.reach.cell
        return cell

    @admin.display(description=_("Muted"))
    def muted(self, row: AlertRule) -> SafeString | str:
        """Until when, by whom and why."""
        if not is_muted(row, clock.now()):
            return EMPTY
        by, reason = visible_text(row.muted_by, 60) or EMPTY, visible_text(row.mute_reason, CELL_CHARS)
        return format_html(
            '{} {}<span class="sch-below sch-quiet">{} {}</span>', _t("until"), time_tag(row.muted_until),
            _t("by %(user)s:") % {"user": by} if reason else _t("by %(user)s") % {"user": by}, reason,
        )  # fmt: skip
