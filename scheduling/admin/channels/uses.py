"""Which rows send to a channel. A channel that a row names cannot be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import admin_url
from scheduling.core.alert_rules import Severity
from scheduling.core.alerts import tells
from scheduling.core.text import visible_text
from scheduling.models import AlertRule, Channel
from scheduling.models.channel import owners_of_channels
from scheduling.models.visibility import Visibility, visibility_of, visibility_of_group

NAMED = 10
"""At most this many rows are named."""


def rows_that_use(channels: Iterable[Channel], visible: Visibility) -> Iterator[Any]:
    """The rows that send to one of the channels and are seen. Of each model, at most one more than NAMED."""
    for model, field in owners_of_channels():
        rows = model._default_manager.filter(**{f"{field}__in": channels}).order_by("pk").distinct()
        if model is AlertRule:
            rows = rows.filter(pk__in=visible.alert_rules().values("pk"))
        yield from rows[: NAMED + 1]


def links_to_uses(channel: Channel) -> SafeString | str:
    """Who sends to the channel: the rules that it is told of by default, and links to the rows that name it.

    All who see the channel may see them.
    """
    visible = visibility_of_group(channel.group_id)
    by_default = _by_default(channel, visible) if channel.tells_by_default else ""
    found = list(rows_that_use([channel], visible))
    if not found:
        return by_default or _("Nothing uses it.")
    links = (
        (admin_url(f"{row._meta.app_label}_{row._meta.model_name}_change", row.pk), visible_text(row, 80))
        for row in found[:NAMED]
    )
    more = _(" and more") if len(found) > NAMED else ""
    named = format_html("{}{}", format_html_join(", ", '<a href="{}">{}</a>', links), more)
    return format_html("{} {} {}", by_default, _("Also used by:"), named) if by_default else named


def _by_default(channel: Channel, visible: Visibility) -> str:
    """How many rules that are on tell the channel although they do not name it."""
    told = [one.value for one in Severity if tells(one.value, channel.least_severity, None, None)]
    rules = visible.alert_rules().filter(enabled=True, channels=None, severity__in=told)
    said = _("Told by default: rules that name no channel use it. Number of rules: %(count)d.")
    return said % {"count": rules.count()}


def why_protected(channels: Iterable[Channel], request: HttpRequest) -> list[str]:
    """One sentence for each row that sends to one of the channels, if the user may see the row."""
    said = _("The %(kind)s “%(name)s” sends to it. Remove the channel from this %(kind)s first.")
    rows = list(rows_that_use(channels, visibility_of(request.user)))[:NAMED]
    named = [said % {"kind": row._meta.verbose_name, "name": visible_text(row)} for row in rows]
    return named or [_("A rule of another group tells it.")]
