"""`cron resume`: a paused schedule makes new runs again, from now on."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.run_sentences import NOT_SWITCHED_OVER
from scheduling.core.text import visible_text
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.management.cron.schedule_sight import tell
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_state import PAUSE, set_active
from scheduling.operations.schedules import seen
from scheduling.operations.shaping import schedule_shape

HELP = "Resumes a paused schedule, or all that an import has made paused, from now on."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, or --imported."""
    parser.add_argument("name", metavar="SCHEDULE", nargs="?", default="", help=CHANGING)
    imported = "all that import_crontab or import_celery_beat has made with --paused, and that are still paused for it"
    parser.add_argument("--imported", action="store_true", help=imported)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Resume the schedule, or the imported ones."""
    if bool(options["name"]) == options["imported"]:
        console.note(_("Name one schedule, or give --imported."))
        return Exit.USAGE
    if options["imported"]:
        return _imported(console)
    actor = console.actor(changes=True)
    row = set_active(actor, named_schedule(console, actor, options["name"], options).pk, True)
    tell(console, schedule_shape(actor, row.pk), _("Resumed schedule %(id)s: %(name)s."))
    return Exit.DONE


def _imported(console: Console) -> int:
    """Resume each schedule that is paused only because it was imported. One that is refused keeps no other one back."""
    actor = console.actor(changes=True)
    actor.must(*PAUSE)
    waiting = seen(actor).filter(status=False, pause_reason__in=NOT_SWITCHED_OVER)
    resumed, refused = list[int](), list[tuple[int, str]]()
    for pk, name in waiting.order_by("pk").values_list("pk", "name"):
        try:
            set_active(actor, pk, True)
        except Refused as error:
            if error.code in (Code.FORBIDDEN, Code.INVALID, Code.NOT_FOUND):
                refused.append((pk, error.said))
                facts = {"id": pk, "name": visible_text(name or "", 100), "error": error.said}
                console.note(_("Schedule %(id)s (%(name)s) stays paused: %(error)s") % facts)
                continue
            raise
        resumed.append(pk)
    if console.as_json:
        told = [{"id": pk, "said": said} for pk, said in refused]
        console.json("resumed", resumed=resumed, refused=told)
    else:
        facts = {"resumed": len(resumed), "refused": len(refused)}
        console.say(_("Imported schedules resumed: %(resumed)s. Still paused: %(refused)s.") % facts)
    return Exit.NOT_DONE if refused else Exit.DONE
