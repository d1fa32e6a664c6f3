"""`manage.py make_groups`: creates the groups viewer, operator, editor and all-groups."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.management.groups import VIEWER, make_groups, wanted


class Command(BaseCommand):
    """Creates missing groups and lists the permissions that existing groups lack."""

    help = (
        "Create the groups viewer, operator, editor and all-groups where they are missing. "
        "Users are put into them in the admin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--prefix and --update."""
        parser.add_argument("--prefix", default="", help='Before each name: --prefix "cron " makes "cron viewer".')
        lacking = "Give groups that are there the permissions they lack. Nothing is ever taken away."
        parser.add_argument("--update", action="store_true", help=lacking)

    @may_be_cut
    def handle(self, *_args: Any, prefix: str, update: bool, verbosity: int, **_options: Any) -> None:
        """Create the missing groups and print a line for each group."""
        if not wanted(VIEWER):
            raise CommandError("There are no permissions yet: run migrate first.")
        for made in make_groups(prefix, update=update):
            if verbosity == 0:
                continue
            if made.created:
                self.stdout.write(f"{made.name}: made, with {len(made.added)} permissions.")
            elif made.added:
                self.stdout.write(f"{made.name}: given {', '.join(made.added)}.")
            elif made.lacking:
                self.stdout.write(f"{made.name}: is there. It lacks {', '.join(made.lacking)}; --update gives them.")
            else:
                self.stdout.write(f"{made.name}: is there, and complete.")
