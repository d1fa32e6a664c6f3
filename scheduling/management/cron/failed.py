"""`cron failed`: the failed inbox, as a list or by error group."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.failure_options import add_conditions, given_conditions, read_selection
from scheduling.management.cron.moments import moment
from scheduling.management.cron.paging import add_paging
from scheduling.management.cron.run_table import run_table
from scheduling.models.newest import newest_keys
from scheduling.operations import failures
from scheduling.operations.actor import Actor
from scheduling.operations.failure_groups import groups_shape
from scheduling.operations.failure_selection import Selection, chosen
from scheduling.operations.shaping import each_usable, executions_in_bulk, page_keys

HELP = "Lists the failed inbox, the newest failure first, or its error groups."


def add_arguments(parser: ArgumentParser) -> None:
    """--groups, the conditions, --limit and --after."""
    parser.add_argument("--groups", action="store_true", help="failures with the same error as one line")
    add_conditions(parser)
    add_paging(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print a page of failures, or the groups."""
    actor = console.actor()
    wanted = read_selection(actor, options, all=not given_conditions(options))
    if options["groups"]:
        return _groups(console, actor, wanted)
    keys, following = _keys(actor, wanted, options["after"], options["limit"])
    found, unusable = each_usable(keys, partial(executions_in_bulk, actor))
    if console.as_json:
        console.json("failures", failures=found, unusable=unusable, next=following)
        return Exit.DONE
    run_table(console, found, unusable)
    if not found:
        console.note(_("No failure matches."))
    if following is not None:
        console.note(_("There are more: --after %(id)s") % {"id": following})
    return Exit.DONE


def _keys(actor: Actor, wanted: Selection, after: int | None, size: int) -> tuple[list[int], int | None]:
    rows, visible = chosen(failures.seen(actor), wanted), actor.visible
    if not visible.is_limited:
        return page_keys(rows, after, size, descending=True)
    rows = rows.prefetch_related(None)
    keys = newest_keys(rows if after is None else rows.filter(pk__lt=after), visible, 0, size + 1, False)
    return keys[:size], keys[size - 1] if len(keys) > size else None


def _groups(console: Console, actor: Actor, wanted: Selection) -> int:
    found = groups_shape(actor, wanted)
    if console.as_json:
        console.json("failure_groups", groups=found.groups, more=found.more, newest_counted=found.newest_counted)
        return Exit.DONE
    if found.groups:
        columns = [_("Error group"), _("Count"), _("Latest"), _("Last"), _("Targets"), _("Error")]
        rows = [
            [
                group.fingerprint, group.count, group.latest, moment(group.last_at), ", ".join(group.targets),
                f"{group.error_class}: {group.error_message}",
            ]
            for group in found.groups
        ]  # fmt: skip
        console.table(columns, rows)
    else:
        console.note(_("No failure matches."))
    if found.more:
        console.note(_("%(count)s smaller groups are left out. Give a condition to see them.") % {"count": found.more})
    if found.newest_counted:
        console.note(_("Only the newest %(count)s failures were counted.") % {"count": found.newest_counted})
    return Exit.DONE
