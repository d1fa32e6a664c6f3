"""`cron apply`: makes, changes and deletes schedules until they are as a file says."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import one_line
from scheduling.management.cron.change_reason import add_reason, reason_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_file import FORMATS, STANDARD, read_entries
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_apply import carry_out, confirm
from scheduling.operations.schedule_plan import plan
from scheduling.operations.schedule_steps import Act, Plan, Rules, Step

HELP = "Makes, changes and deletes schedules until they are as a file says."

SIGNS = {Act.MAKE: ("+", "good"), Act.CHANGE: ("~", "warn"), Act.DELETE: ("-", "bad")}


def add_arguments(parser: ArgumentParser) -> None:
    """FILE, what is allowed, and how far to go."""
    parser.add_argument("file", metavar="FILE", help="-: standard input")
    parser.add_argument("--format", choices=FORMATS, help="default: yaml for FILE.yaml and FILE.yml, else json")
    parser.add_argument("--source", metavar="NAME", help="the name that the schedules keep (default: FILE's base name)")
    parser.add_argument("--prune", action="store_true", help="delete what the file owned and does not hold any more")
    parser.add_argument("--count", type=whole(0), metavar="N", help="confirms that --prune deletes N schedules")
    parser.add_argument("--take-over", action="store_true", help="also change schedules that another file owns")
    parser.add_argument("--allow-secrets", action="store_true", help="accept a file that holds secrets")
    add_reason(parser)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    only.add_argument("--check", action="store_true", help="as --dry-run; exit code 1 if anything would change")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print what changes, then do it."""
    only_look = options["dry_run"] or options["check"]
    actor = console.actor(changes=not only_look)
    held = read_entries(options["file"], options["format"])
    rules = Rules(options["prune"], options["take_over"], options["allow_secrets"])
    found = plan(actor, held.schedules, _source(options), rules, held.calendars)
    if not console.as_json:
        _show(console, found)
    if found.problems:
        raise Refused.invalid(found.problems)
    if found.needs_count and options["count"] is None:
        said = _("All or most schedules of the file would be deleted. To confirm, add --count %(count)s.")
        console.note(said % {"count": len(found.of(Act.DELETE))})
    if not only_look:
        carry_out(actor, found, options["count"], reason_of(options))
    elif options["count"] is not None:
        confirm(found, options["count"])
    _tell(console, found, not only_look)
    return Exit.NOT_DONE if options["check"] and found.is_drift else Exit.DONE


def _source(options: Mapping[str, Any]) -> str:
    """The name that the schedules keep. It is empty, and refused, for standard input without --source."""
    if options["source"] is not None:
        return str(options["source"])
    return "" if options["file"] == STANDARD else Path(options["file"]).name


def _show(console: Console, found: Plan) -> None:
    for step in found.calendars:
        _show_step(console, step, _("calendar “%(name)s”") % {"name": one_line(step.name)})
    for step in found.steps:
        _show_step(console, step, one_line(step.name))
    for note in found.notes:
        console.note(note)


def _show_step(console: Console, step: Step, name: str) -> None:
    if step.act is not Act.UNCHANGED:
        sign, tone = SIGNS[step.act]
        console.say(f"{sign} {_verb(step.act)} {name}", tone)
        for edit in step.edits:
            console.say(f"    {_line(step, edit)}")


def _verb(act: Act) -> str:
    return {Act.MAKE: _("make"), Act.CHANGE: _("change"), Act.DELETE: _("delete")}[act]


def _line(step: Step, edit: Change) -> str:
    new = _("(empty)") if edit.new is None else edit.new
    if step.act is Act.MAKE:
        return one_line(f"{edit.name}: {new}")
    return one_line(f"{edit.name}: {_('(empty)') if edit.old is None else edit.old} → {new}")


def _shapes(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {"act": str(step.act), "name": step.name, "id": step.pk, "edits": [asdict(edit) for edit in step.edits]}
        for step in steps
        if step.act is not Act.UNCHANGED
    ]


def _tell(console: Console, found: Plan, done: bool) -> None:
    counts = {act: len(found.of(act)) for act in Act}
    if console.as_json:
        steps, calendars = map(_shapes, (found.steps, found.calendars))
        kind = "applied" if done else "plan"
        console.json(
            kind, source=found.source, drift=found.is_drift, steps=steps, unchanged=counts[Act.UNCHANGED],
            notes=found.notes, calendars=calendars, needs_count=counts[Act.DELETE] if found.needs_count else None,
        )  # fmt: skip
    elif not found.is_drift:
        console.say(_("The schedules are as the file says: %(count)s.") % {"count": counts[Act.UNCHANGED]})
    else:
        facts = {str(act): number for act, number in counts.items()}
        said = _("Made: %(make)s. Changed: %(change)s. Deleted: %(delete)s. Unchanged: %(unchanged)s.")
        would = _("To make: %(make)s. To change: %(change)s. To delete: %(delete)s. Unchanged: %(unchanged)s.")
        console.say((said if done else would) % facts)
        changed = sum(step.act is not Act.UNCHANGED for step in found.calendars)
        if changed:
            said = _("Calendars made or changed: %(count)s.") if done else _("Calendars to make or change: %(count)s.")
            console.say(said % {"count": changed})
