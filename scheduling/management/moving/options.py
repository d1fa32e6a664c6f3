"""The options that both imports have."""

from __future__ import annotations

from argparse import ArgumentParser

from scheduling.management.cron.whose_name import VARIABLE


def add_common(parser: ArgumentParser) -> None:
    """--dry-run, --paused, --as, --json."""
    parser.add_argument("--dry-run", action="store_true", help="print what would be made, and change nothing")
    parser.add_argument("--paused", action="store_true", help="make all schedules paused, to switch over later")
    parser.add_argument("--as", dest="as_user", metavar="USERNAME", help=f"act as this user (or set {VARIABLE})")
    parser.add_argument("--json", action="store_true", help="write one JSON document")
