"""Findings about the deployment: whether this database must be confirmed, and which processes hold."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader, in_language
from scheduling.core.text import visible_text
from scheduling.models import Process
from scheduling.monitoring.findings.finding import Finding, Named, fail, named, ok
from scheduling.monitoring.findings.present import Present
from scheduling.processes.guard import guard

CONFIRM = "manage.py confirm_deployment"


def examine(present: Present) -> Iterator[Finding]:
    """Report a hold: the one that the settings of this process find, and those that the alive processes have found."""
    advice = _(
        "Look at what waits, then confirm: %(command)s, or the page Deployment. If this process has wrong settings, "
        "correct its database or CRON_DEPLOYMENT instead."
    )
    if hold := guard.look():
        seen = _("Nothing is claimed, started or published. %(reason)s") % {"reason": for_reader(hold.said, 500)}
        yield fail("deployment", seen, advice % {"command": CONFIRM})
    else:
        yield ok("deployment", "The database belongs to this deployment.")
        held = [process for process in present.alive if process.held]
        seen = _("Processes that claim, start and publish nothing: %(count)s.")
        yield from named(fail("held", seen, advice % {"command": CONFIRM}), held, _held)


def _held(process: Process) -> Named:
    return Named(f"{process.get_kind_display()} {visible_text(process.container_id, 60)}", in_language(process.held))
