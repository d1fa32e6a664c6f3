"""Which rows send to a channel. A channel in use cannot be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import admin_url
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
    """Links to the rows that send to the channel, or a sentence. All who see the channel may see them."""
    found = list(rows_that_use([channel], visibility_of_group(channel.group_id)))
    if not found:
        return _("Nothing uses it.")
    links = (
        (admin_url(f"{row._meta.app_label}_{row._meta.model_name}_change", row.pk), visible_text(row, 80))
        for row in found[:NAMED]
    )
    more = _(" and more") if len(found) > NAMED else ""
    return format_html("{}{}", format_html_join(", ", '<a href="{}">{}</a>', links), more)


def why_protected(channels: Iterable[Channel], request: HttpRequest) -> list[str]:
    """One sentence for each row that sends to one of the channels, if the user may see the row."""
    said = _("The %(kind)s “%(name)s” sends to it. Remove the channel from this %(kind)s first.")
    rows = list(rows_that_use(channels, visibility_of(request.user)))[:NAMED]
    named = [said % {"kind": row._meta.verbose_name, "name": visible_text(row)} for row in rows]
    return named or [_("A rule of another group tells it.")]
