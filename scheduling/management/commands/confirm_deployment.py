"""`manage.py confirm_deployment`: shows why a database is held, and what would run; confirms it if it is told to."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone as clock

from scheduling.core.text import visible_text
from scheduling.execution.confirm import RUN_WAITING, SET_WAITING_ASIDE, Outlook, confirm, outlook
from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.models import Deployment


class Command(BaseCommand):
    help = (
        "Shows why nothing is claimed, started or published with this database: it is a copy, or it was restored. "
        "With --waiting, confirms that it is the one to work with."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--waiting, --user."""
        waiting = (
            f"confirm. {SET_WAITING_ASIDE}: what waits goes to the failed inbox, and what fell due is skipped. "
            f"{RUN_WAITING}: what waits runs, and what fell due is caught up"
        )
        parser.add_argument("--waiting", choices=(RUN_WAITING, SET_WAITING_ASIDE), help=waiting)
        parser.add_argument(
            "--user", default="", help="the name of the user in whose name the confirmation is recorded"
        )

    @may_be_cut
    def handle(self, *_args: Any, waiting: str | None, user: str, **_options: Any) -> None:
        """Print what a confirmation would do; do it if `--waiting` says how."""
        now = clock.now()
        found = outlook(now)
        if found is None:
            self.stdout.write("The database belongs to this deployment. There is nothing to confirm.")
            return
        for line in lines(found):
            self.stdout.write(line)
        if waiting is None:
            self.stdout.write(f"To confirm: --user NAME --waiting {SET_WAITING_ASIDE}, or --waiting {RUN_WAITING}.")
            return
        account = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: user}).first()
        if account is None:
            raise CommandError("--user must name a user of this site. The confirmation is recorded in that name.")
        done = confirm(now, account.get_username(), run_waiting=waiting == RUN_WAITING)
        if done is None:
            self.stdout.write("It was confirmed a moment ago.")
            return
        LogEntry.objects.log_actions(account.pk, Deployment.objects.all(), CHANGE, done.recorded(found.hold))
        self.stdout.write(f"Confirmed. {done.counts}")


def lines(found: Outlook) -> list[str]:
    """What a person must know, a line each."""
    said = [visible_text(found.hold.said, 500), f"These settings belong to {visible_text(found.own)}."]
    if found.beat_at is not None:
        said.append(f"The last sign of work in the database: {found.beat_at:%Y-%m-%d %H:%M:%S} UTC.")
    if found.known_until is not None:
        said.append(
            f"Runs were started until {found.known_until:%Y-%m-%d %H:%M:%S} UTC at the latest. "
            f"Schedules that fell due by then: {found.due_before}. They have run, and are skipped."
        )
    states = ", ".join(f"{state} {count}" for state, count in sorted(found.states.items()))
    said.append(f"Executions that wait or run: {found.waiting}{f' ({states})' if states else ''}.")
    said.append(f"Schedules that have fallen due: {found.due}.")
    if found.alive:
        said.append(
            f"Processes that work with this database now: {len(found.alive)}. If it is theirs, correct the settings "
            "here instead: after a confirmation they hold."
        )
    return said
