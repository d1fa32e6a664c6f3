"""A replay in a line: its state, how far it is, why it went no further."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.parts import EMPTY, chip, shown, state_chip, when
from scheduling.models import Replay, SchedulerExecution
from scheduling.models.replay import OPEN

STATES: dict[str, tuple[str, str]] = {
    Replay.State.COLLECTING: ("clock", "wait"),
    Replay.State.WAITING: ("play", "busy"),
    Replay.State.RELEASED: ("again", "busy"),
    Replay.State.STOPPED: ("stop", "bad"),
    Replay.State.DONE: ("check", "good"),
}
"""Each state's icon and tone; its word is the choice's own."""

RECENT = timedelta(hours=1)
"""How long one that has ended stays above the inbox."""
MOST = 10


@dataclass
class Line:
    """One replay, for the templates."""

    pk: int
    chip: SafeString
    words: str
    reason: str
    canary: SafeString | str
    selection: str
    by: str
    started: str
    address: str
    is_open: bool
    stop: str
    """The address that stops it; empty where it has ended, or this user may not."""


def lines(request: HttpRequest, now: datetime) -> list[Line]:
    """What is under way and what has ended lately, the newest first."""
    rows = Replay.objects.filter(Q(state__in=OPEN) | Q(finished_at__gte=now - RECENT)).order_by("-pk")[:MOST]
    found = list(rows)
    canaries = SchedulerExecution.objects.filter(pk__in=[row.canary for row in found if row.canary is not None])
    states = dict(canaries.values_list("pk", "state"))
    return [_line(request, row, now, states) for row in found]


def line(request: HttpRequest, row: Replay, now: datetime) -> Line:
    """One of them as this user may see it."""
    return _line(
        request, row, now, dict(SchedulerExecution.objects.filter(pk=row.canary or 0).values_list("pk", "state"))
    )


def _line(request: HttpRequest, row: Replay, now: datetime, states: dict[int, str]) -> Line:
    may_stop = row.is_open and request.user.has_perm("scheduling.republish_failedexecution")
    return Line(
        pk=row.pk,
        chip=replay_chip(row),
        words=in_words(row),
        reason=shown(row.reason, 400),
        canary=_canary(row, states),
        selection=shown(row.selection, 200),
        by=shown(row.requested_by, 60),
        started=when(row.created_at, now),
        address=reverse("admin:scheduling_replay_change", args=[row.pk]),
        is_open=row.is_open,
        stop=reverse("admin:scheduling_replay_stop", args=[row.pk]) if may_stop else "",
    )


def replay_chip(row: Replay) -> SafeString:
    """Its state; one that nobody knows is shown as it is written."""
    name, tone = STATES.get(row.state, ("dot", "off"))
    return chip(row.get_state_display(), name, tone)


def in_words(row: Replay) -> str:
    """How far it is: `140 of 500 sent, 3 skipped`."""
    others = max(row.total - 1, 0)
    if row.state == Replay.State.COLLECTING.value:
        return _("What was chosen is being written down.")
    if row.state == Replay.State.WAITING.value:
        text = ngettext("%(count)d other waits for its success.", "%(count)d others wait for its success.", others)
        return text % {"count": others}
    said = _("%(sent)d of %(total)d sent") % {"sent": row.sent, "total": row.total}
    if row.skipped:
        said += ", " + _("%(count)d skipped, which had left the inbox by other hands") % {"count": row.skipped}
    if row.minutes and row.state == Replay.State.RELEASED.value:
        said += ", " + _("spread over %(count)d minutes") % {"count": row.minutes}
    return said + "."


def _canary(row: Replay, states: dict[int, str]) -> SafeString | str:
    if row.canary is None:
        return EMPTY
    address = reverse("admin:scheduling_schedulerexecution_change", args=[row.canary])
    said = _("execution %(id)d") % {"id": row.canary}
    if row.canary not in states:
        return said
    return format_html('<a href="{}">{}</a> {}', address, said, state_chip(states[row.canary]))
