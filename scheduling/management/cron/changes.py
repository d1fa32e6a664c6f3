"""What an edit would change, as text: the next runs before and after, and the load of the next 24 hours."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from scheduling.core.run_changes import Mark
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.models import Scheduler
from scheduling.operations.next_run_shapes import LoadShape, PreviewShape
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import EMPTY, format_minute

SIGNS = {Mark.SAME.value: " ", Mark.CHANGED.value: "~", Mark.ADDED.value: "+", Mark.REMOVED.value: "-"}


def told(console: Console, row: Scheduler, found: PreviewShape) -> int:
    """Write the runs side by side, one pair in a line, and the load. The times are those of the stored zone."""
    if console.as_json:
        console.json("preview", preview=found)
        return Exit.DONE
    info = zone_of(row)
    lines = [
        (SIGNS[one.mark], _at(one.before, info), _at(one.after, info), "" if one.mark == Mark.SAME else one.mark)
        for one in found.changes
    ]
    console.table(("", _("BEFORE"), _("AFTER"), ""), lines)
    _tell_load(console, found.load, info)
    console.say(_("Nothing was changed."))
    return Exit.DONE


def _at(instant: datetime | None, info: ZoneInfo) -> str:
    return EMPTY if instant is None else format_minute(instant, info)


def _tell_load(console: Console, found: LoadShape, info: ZoneInfo) -> None:
    if found.is_cut:
        console.note(_("Only the minutes until %(time)s are counted.") % {"time": _at(found.until, info)})
    if found.busiest is None:
        return
    said = _("Its most crowded minute is %(time)s: %(with)s schedules start then, and %(without)s without the edit.")
    busiest = found.busiest
    console.say(said % {"time": _at(busiest.at, info), "with": busiest.with_it, "without": busiest.without})
    if found.emptier:
        near = ", ".join(f"{_at(one.at, info)} ({one.starts})" for one in found.emptier)
        console.say(_("Emptier minutes near it: %(minutes)s") % {"minutes": near})
