"""A replay as one line: its state, its progress, and why it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace

from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.replays.outcome import outcomes
from scheduling.admin.ui.badges import badge, state_badge
from scheduling.admin.ui.links import admin_url, execution_url, link
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.history_sentences import selection_in_language
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import Replay, SchedulerExecution
from scheduling.models.replay import OPEN
from scheduling.models.visibility import visibility_of

STATES: dict[str, tuple[str, str]] = {
    Replay.State.COLLECTING: ("clock", "wait"),
    Replay.State.WAITING: ("play", "busy"),
    Replay.State.RELEASED: ("again", "busy"),
    Replay.State.STOPPED: ("stop", "bad"),
    Replay.State.DONE: ("check", "good"),
}
"""The icon and tone of each state. The word for the state is the label in Replay.State."""

RECENT = timedelta(hours=1)
"""How long a finished replay is shown above the failed inbox."""
SHOWN_ROWS = 10


def lines(request: HttpRequest, now: datetime) -> list[SimpleNamespace]:
    """Open and recently finished replays, the newest first."""
    replays = visibility_of(request.user).replays()
    rows = replays.filter(Q(state__in=OPEN) | Q(finished_at__gte=now - RECENT)).order_by("-pk")[:SHOWN_ROWS]
    return shown(request, list(rows), now)


def shown(request: HttpRequest, rows: Sequence[Replay], now: datetime) -> list[SimpleNamespace]:
    """The values of these replays for the templates."""
    states, ended = canary_states(rows), outcomes(rows)
    return [_line(request, row, now, states, ended[row.pk]) for row in rows]


def _line(request: HttpRequest, row: Replay, now: datetime, states: Mapping[int, str], ended: str) -> SimpleNamespace:
    """The values of one replay for the templates.

    `stop` is the URL that stops the replay. It is empty if the replay has ended or the user may not stop it.

    Args:
        states: maps the primary key of each canary to its state.
        ended: how the executions ended.
    """
    may_stop = row.is_open and request.user.has_perm("scheduling.republish_failedexecution")
    return SimpleNamespace(
        pk=row.pk,
        chip=replay_chip(row),
        words=" ".join(filter(None, [in_words(row), ended])),
        reason=for_reader(row.reason, 400),
        canary=_canary(row, states),
        selection=visible_text(selection_in_language(row.selection), 200),
        by=visible_text(row.requested_by, 60),
        started=time_with_relative(row.created_at, now),
        address=admin_url("scheduling_replay_change", row.pk),
        is_open=row.is_open,
        stop=admin_url("scheduling_replay_stop", row.pk) if may_stop else "",
    )


def canary_states(rows: Iterable[Replay]) -> dict[int, str]:
    """Maps the primary key of each canary to its state. Canaries that retention removed are left out."""
    canaries = SchedulerExecution.objects.filter(pk__in=[row.canary for row in rows if row.canary is not None])
    return dict(canaries.values_list("pk", "state"))


def replay_chip(row: Replay) -> SafeString:
    """The state of a replay as a badge. If the state is unknown, the badge shows the stored text."""
    return badge(row.get_state_display(), *STATES.get(row.state, ("dot", "off")))


def in_words(row: Replay) -> str:
    """The progress of a replay as a sentence, such as `140 of 500 sent.`"""
    others = max(row.total - 1, 0)
    if row.state == Replay.State.COLLECTING.value:
        return _("The selection is being saved.")
    if row.state == Replay.State.WAITING.value:
        text = ngettext("%(count)d other waits for the canary.", "%(count)d others wait for the canary.", others)
        return text % {"count": others}
    said = _("%(sent)d of %(total)d sent") % {"sent": row.sent, "total": row.total}
    if row.skipped:
        left = _("%(count)d already handled, or another run of the schedule was not over")
        said += ", " + left % {"count": row.skipped}
    if row.minutes and row.state == Replay.State.RELEASED.value:
        said += ", " + _("spread over %(count)d minutes") % {"count": row.minutes}
    return said + "."


def _canary(row: Replay, states: Mapping[int, str]) -> SafeString | str:
    if row.canary is None:
        return EMPTY
    said = _("execution %(id)d") % {"id": row.canary}
    if row.canary not in states:
        return said
    return format_html("{} {}", link(execution_url(row.canary), said), state_badge(states[row.canary]))
