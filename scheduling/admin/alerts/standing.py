"""The open alerts about a schedule or an execution, for the pages of these."""

from __future__ import annotations

from typing import Any

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import severity_badge
from scheduling.admin.ui.links import admin_url
from scheduling.core.text import visible_text

MOST = 5
"""A page names so many alerts."""


def alerts_context(viewer: Viewer, **about: int) -> dict[str, Any]:
    """The template context: the open alerts. One query reads them.

    Args:
        about: `schedule` or `execution`, with its primary key.
    """
    if not viewer.may("view_alert"):
        return {}
    rows = viewer.visible.alerts().filter(ended_at=None, **about).order_by("-pk")
    found = list(rows.only("severity", "subject", "seen", "rule_name", "started_at")[: MOST + 1])
    lines = [
        {
            "severity": severity_badge(row.severity),
            "address": admin_url("scheduling_alert_change", row.pk),
            "name": visible_text(row.rule_name, 100),
            "seen": visible_text(row.seen, 300),
        }
        for row in found[:MOST]
    ]
    return {"alerts": lines, "more_alerts": viewer.list_of("alert", **about) if len(found) > MOST else ""}
