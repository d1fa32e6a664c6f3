"""Says on the pages of alerts and rules how to be told, while no channel is told of anything."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.links import admin_url
from scheduling.models.alert_routes import tells_a_channel


def how_to_be_told(viewer: Viewer) -> list[SafeString | str]:
    """The sentences; empty if a rule tells a channel."""
    if tells_a_channel():
        return []
    said = _("No one is told of alerts yet: no rule tells a channel.")
    how = _(
        "Add a channel (a chat, a webhook or e-mail addresses), tick “told by default”, and send a test to it. Then "
        "each rule that is on and names no other channel tells it."
    )
    if not viewer.may("add_channel"):
        return [f"{said} {how}"]
    link = format_html('<a href="{}">{}</a>', admin_url("scheduling_channel_add"), _("Add a channel"))
    return [format_html("{} {} {}", said, how, link)]
