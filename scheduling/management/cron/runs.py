"""`cron runs`: executions, the newest first, or one of them with all that belongs to it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.targets import TARGETS
from scheduling.management.cron.checked import checked
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import moment
from scheduling.management.cron.paging import add_paging
from scheduling.management.cron.run_table import run_table
from scheduling.management.cron.schedule_name import READING
from scheduling.management.cron.words import state
from scheduling.operations.actor import Actor
from scheduling.operations.execution_shapes import ExecutionDetail
from scheduling.operations.executions import find
from scheduling.operations.refused import Refused
from scheduling.operations.run_filter import LIMIT, RunFilter, run_keys
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.schedules import find as find_schedule
from scheduling.operations.shaping import each_usable, execution_detail, executions_in_bulk
from scheduling.operations.typed_instants import typed_instants

HELP = "Lists executions, the newest first; with an id: one of them with attempts, last traceback and files."


def add_arguments(parser: ArgumentParser) -> None:
    """The id or the filters, --limit and --after."""
    parser.add_argument("id", nargs="?", metavar="ID", help="show this execution")
    parser.add_argument("--state", choices=tuple(str(state) for state in State))
    parser.add_argument("--type", choices=TARGETS)
    parser.add_argument("--trigger", choices=tuple(str(trigger) for trigger in Trigger))
    parser.add_argument("--schedule", help=READING)
    parser.add_argument("--target", help="the name of a target")
    parser.add_argument("--group", metavar="FINGERPRINT", help="an error group")
    parser.add_argument("--error", metavar="CLASS", help="the class of the error")
    when = "due at this instant or later, such as '2026-03-29 02:30' in the site's zone"
    parser.add_argument("--since", metavar="INSTANT", help=when)
    parser.add_argument("--until", metavar="INSTANT", help="due before this instant")
    parser.add_argument("--search", default="", metavar="TEXT", help="words, or error:, target:, key:, param: …")
    add_paging(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print a page of the executions, or one execution."""
    actor = console.actor()
    if options["id"] is not None:
        return _one(console, execution_detail(actor, find(actor, options["id"])))
    wanted = _wanted(actor, options)
    keys, following, is_cut = run_keys(actor, wanted, options["after"], options["limit"])
    found, unusable = each_usable(keys, partial(executions_in_bulk, actor))
    if console.as_json:
        console.json("executions", executions=found, unusable=unusable, next=following, is_cut=is_cut)
        return Exit.DONE
    run_table(console, found, unusable)
    if not found:
        console.note(_("No execution matches."))
    if is_cut:
        console.note(_("Only the newest %(count)s executions were searched.") % {"count": LIMIT})
    if following is not None:
        console.note(_("There are more: --after %(id)s") % {"id": following})
    return Exit.DONE


def _wanted(actor: Actor, options: Mapping[str, Any]) -> RunFilter:
    instants: dict[str, Any] = {}
    for name in ("since", "until"):
        if (text := options[name]) is not None:
            typed = typed_instants(text, zone_of(None), clock.now())
            if typed is None:
                said = _("Type a time such as 03:00, or a date and a time such as %(example)s.")
                raise Refused.value(name, said % {"example": "2026-03-29 03:00"})
            instants[name] = typed.instants[0]
    chosen = options["schedule"]
    return checked(
        RunFilter, state=options["state"], type=options["type"], trigger=options["trigger"],
        scheduler=None if chosen is None else find_schedule(actor, chosen).pk, target_name=options["target"],
        fingerprint=options["group"], error_class=options["error"], q=options["search"], **instants,
    )  # fmt: skip


def _one(console: Console, row: ExecutionDetail) -> int:
    if console.as_json:
        console.json("execution", execution=row)
        return Exit.DONE
    console.facts([
        (_("id"), row.id),
        (_("schedule"), row.schedule),
        (_("target"), f"{row.target.name} ({row.target.type})"),
        (_("state"), state(row.state)),
        (_("reason"), in_language(row.reason)),
        (_("error"), in_language(f"{row.error_class}: {row.error_message}") if row.error_class else ""),
        (_("error group"), row.fingerprint),
        (_("due"), moment(row.scheduled_at)),
        (_("started"), moment(row.started_at)),
        (_("ended"), moment(row.finished_at)),
        (_("trigger"), " ".join(filter(None, [row.trigger, row.requested_by]))),
        (_("params"), json.dumps(row.params, ensure_ascii=False) if row.params else ""),
        (_("result"), "" if row.result is None else json.dumps(row.result, ensure_ascii=False)),
    ])  # fmt: skip
    if row.attempts:
        console.say()
        columns = [_("Attempt"), _("Outcome"), _("Started"), _("Consumer"), _("Error")]
        attempts = [
            [one.number, state(one.outcome), moment(one.started_at), one.consumer, in_language(one.error_message)]
            for one in row.attempts
        ]
        console.table(columns, attempts)
    if failed := next((one for one in reversed(row.attempts) if one.traceback), None):
        console.say()
        console.say(_("Traceback of attempt %(number)d:") % {"number": failed.number})
        console.document(failed.traceback)
    if row.artefacts:
        console.say()
        console.table([_("File"), _("Bytes"), _("Attempt")], [[f.filename, f.size, f.attempt] for f in row.artefacts])
    return Exit.DONE
