"""Says in words which handlers a process knows, and how they differ from those of the processes beside it."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.models import KnownHandler, Process
from scheduling.monitoring.findings.handlers import compared, differing


def handlers(row: Process, now: datetime) -> list[str]:
    """The number of handlers, and the differences from the alive processes of the same kind and queue.

    Empty if the process did not record its handlers.
    """
    own = row.known_set
    if own is None:
        return []
    count = KnownHandler.objects.filter(handler_set=own).count()
    found = [ngettext("%(count)d handler", "%(count)d handlers", count) % {"count": count}]
    alive = Process.objects.alive(now, row.kind).exclude(pk=row.pk)
    others = {other.known_set for other in alive if other.queue == row.queue and other.known_set is not None}
    if unlike := others - {own}:
        beside = _("Beside other alive processes of the same kind, it %(differences)s.")
        words = compared(own, differing({own, *unlike})).words
        found += [beside % {"differences": each} for each in words]
    elif others:
        found.append(_("The other alive processes of the same kind know the same."))
    return found
