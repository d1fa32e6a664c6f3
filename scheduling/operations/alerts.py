"""Acknowledges and mutes alerts, in the name of an actor. All doors call these functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.alert_mutes import LONGEST_MUTE, MuteProblem, check_end
from scheduling.core.text import visible_text
from scheduling.models import Alert
from scheduling.models.alert_rule import REASON_LENGTH
from scheduling.models.visibility import Visibility
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.batches import in_chunks
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Code, Refused

VIEW = "scheduling.view_alert"
ACKNOWLEDGE = "scheduling.acknowledge_alert"


def seen(actor: Actor) -> QuerySet[Alert]:
    """The alerts that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(VIEW)
    return actor.visible.alerts()


def by_id(actor: Actor, pk: int) -> Alert:
    """One alert.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND.
    """
    row = seen(actor).filter(pk=pk).first()
    if row is None:
        raise Refused(Code.NOT_FOUND, _("There is no alert %(id)s.") % {"id": visible_text(pk, 40)})
    return row


def acknowledge(actor: Actor, rows: QuerySet[Alert]) -> list[int]:
    """Record that the actor has taken notice. Returns the ids of the alerts that were open and not acknowledged yet.

    The dashboard counts them no longer. The channels that were told of the start are still told of the end.

    Args:
        rows: the alerts. Those that the actor does not see are left out.

    Raises:
        Refused: FORBIDDEN.
    """
    now, name = clock.now(), actor.get_username()[:150]
    columns = {"acknowledged_at": now, "acknowledged_by": name}
    return _change(actor, rows, Q(ended_at=None, acknowledged_at=None), columns, lambda _row: ("acknowledge", []))


def take_back(actor: Actor, rows: QuerySet[Alert]) -> list[int]:
    """Take an acknowledgement back. Returns the ids of the open alerts that were acknowledged.

    Raises:
        Refused: FORBIDDEN.
    """
    columns = {"acknowledged_at": None, "acknowledged_by": ""}
    wanted = Q(ended_at=None, acknowledged_at__isnull=False)

    def said(row: Alert) -> tuple[str, list[Change]]:
        return "acknowledgement taken back", [Change("acknowledged_by", visible_text(row.acknowledged_by, 150), None)]

    return _change(actor, rows, wanted, columns, said)


def may_mute(visible: Visibility, row: Alert) -> bool:
    """Whether a user who sees this may mute the alert.

    An alert without a group may be about the whole installation, and a mute is for all users and for the monitor
    outside. So a user who sees only some groups may acknowledge it, but not mute it.
    """
    return not visible.is_limited or row.group_id is not None


def check_mute(actor: Actor, rows: QuerySet[Alert]) -> None:
    """Refuse to mute or unmute if one of the open alerts may be muted only by users who see all groups.

    Raises:
        Refused: FORBIDDEN, with a sentence.
    """
    actor.must(ACKNOWLEDGE)
    if actor.visible.is_limited and rows.filter(ended_at=None, group=None).exists():
        said = _("Only users who see all groups may mute or unmute an alert about the whole installation.")
        raise Refused(Code.FORBIDDEN, said)


def mute(actor: Actor, rows: QuerySet[Alert], until: datetime, reason: str = "") -> list[int]:
    """Mute open alerts. Returns their ids.

    An alert that no channel was told of is told when the mute ends, if it is still open then.

    Raises:
        Refused: FORBIDDEN, as `check_mute` says; or INVALID if the end has passed or is too far away.
    """
    text = mute_reason(reason)
    usable_end(until)
    check_mute(actor, rows)
    columns = {"muted_until": until, "muted_by": actor.get_username()[:150], "mute_reason": text}
    wanted = Q(ended_at=None, group__isnull=False) if actor.visible.is_limited else Q(ended_at=None)
    return _change(actor, rows, wanted, columns, lambda row: ("mute", mute_edits(row, until, text)))


def unmute(actor: Actor, rows: QuerySet[Alert]) -> list[int]:
    """End the mutes. Returns the ids of the open alerts that were muted.

    Raises:
        Refused: FORBIDDEN, as `check_mute` says.
    """
    check_mute(actor, rows)
    columns = {"muted_until": None, "muted_by": "", "mute_reason": ""}
    wanted = Q(ended_at=None, muted_until__gt=clock.now())
    if actor.visible.is_limited:
        wanted &= Q(group__isnull=False)
    return _change(actor, rows, wanted, columns, lambda row: ("unmute", mute_edits(row, None, "")))


def usable_end(until: datetime) -> None:
    """Refuse an end of a mute that has passed or is too far away.

    Raises:
        Refused: INVALID, with a sentence.
    """
    try:
        check_end(until, clock.now())
    except MuteProblem as problem:
        said = _("This time has passed.")
        if not problem.past:
            said = _("At most %(days)d days. Turn the rule off instead.") % {"days": LONGEST_MUTE.days}
        raise Refused.value("until", said) from None


def mute_reason(text: str) -> str:
    """The reason as one line, because pages show it inside a sentence."""
    return visible_text(" ".join(text.split()))[:REASON_LENGTH]  # the visible codes are longer than the characters


def mute_edits(row: Any, until: datetime | None, reason: str) -> list[Change]:
    """What the history says about a new mute of an alert or a rule, or about its end."""
    edits = [Change("muted_until", _iso(row.muted_until), _iso(until))]
    if (row.mute_reason or "") != reason:
        edits.append(Change("mute_reason", visible_text(row.mute_reason, REASON_LENGTH) or None, reason or None))
    return edits


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat(timespec="seconds")


def _change(
    actor: Actor, rows: QuerySet[Alert], wanted: Q, columns: dict[str, Any],
    said: Callable[[Alert], tuple[str, Sequence[Change]]],
) -> list[int]:  # fmt: skip
    """Change the alerts that still meet the condition, and write an entry of the history for each of them."""
    actor.must(ACKNOWLEDGE)
    seen_rows = seen(actor).filter(wanted, pk__in=rows.order_by().values("pk"))
    done: list[int] = []
    for chunk in in_chunks(seen_rows):
        with transaction.atomic():
            for row in chunk:
                # Compare-and-set: two users who press the same button make one entry.
                if Alert.objects.filter(wanted, pk=row.pk).update(**columns):
                    record(actor, [row], *said(row))
                    done.append(row.pk)
    return done
