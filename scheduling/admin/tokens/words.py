"""What pages say about API tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.times import EMPTY, relative_time, time_tag
from scheduling.core.text import visible_text
from scheduling.models import ApiToken

MOST_NAMED = 200
"""A page names at most so many permissions of a token."""

_LOOKS = {
    ApiToken.States.LIVE: ("check", "good"),
    ApiToken.States.EXPIRED: ("clock", "off"),
    ApiToken.States.REVOKED: ("stop", "off"),
}


def state_badge(row: ApiToken, now: datetime) -> SafeString:
    """Whether the token is live, expired or revoked."""
    state = row.state(now)
    return badge(state.label, *_LOOKS[state])


def created(row: ApiToken) -> SafeString:
    """When the token was made. On a phone, lists have no headings, so the words say which time it is."""
    return _at(row.created_at, _("created %(when)s"))


def used(row: ApiToken) -> SafeString | str:
    """When the token was used last."""
    return _("not used yet") if row.last_used_at is None else _at(row.last_used_at, _("used %(when)s"))


def expires(row: ApiToken, now: datetime) -> SafeString | str:
    """When the token expires or has expired."""
    if row.expires_at is None:
        return _("does not expire")
    return _at(row.expires_at, _("expired %(when)s") if row.expires_at <= now else _("expires %(when)s"))


def _at(instant: datetime, words: str) -> SafeString:
    below = words % {"when": relative_time(instant)}
    return format_html('{}<span class="sch-quiet sch-below">{}</span>', time_tag(instant), below)


def access(row: ApiToken) -> str:
    """What the token allows, such as `read only, 3 permissions`."""
    found = _names(row)
    if found is None:
        return _("read only") if row.read_only else _("all that the owner may do")
    count = ngettext("%(count)s permission", "%(count)s permissions", len(found)) % {"count": len(found)}
    return _("read only, %(permissions)s") % {"permissions": count} if row.read_only else count


def permissions(row: ApiToken) -> SafeString | str:
    """The names of the permissions that a token is limited to."""
    found = _names(row)
    if found is None:
        return EMPTY
    lines = [(visible_text(name, 200),) for name in found[:MOST_NAMED]]
    return format_html_join("", "<div><code>{}</code></div>", [*lines, *([("…",)] if len(found) > MOST_NAMED else [])])


def _names(row: ApiToken) -> list[Any] | None:
    """The list of a token; None if it has none. Plain SQL may have written another value, which allows nothing."""
    found = row.permissions
    return found if found is None or isinstance(found, list) else []
