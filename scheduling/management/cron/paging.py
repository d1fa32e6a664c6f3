"""The options `--limit` and `--after` of lists, and numbers within bounds."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable

MOST = 1_000
FEW = 50


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Reads a whole number between two bounds."""

    def number(text: str) -> int:
        try:
            found = int(text) if len(text) <= 20 else most + 1
        except ValueError:
            raise ArgumentTypeError(f"{text[:40]!r} is no whole number") from None
        if not least <= found <= most:
            raise ArgumentTypeError(f"give a whole number from {least} to {most}")
        return found

    return number


def add_paging(parser: ArgumentParser) -> None:
    """--limit and --after."""
    parser.add_argument("--limit", type=whole(1, MOST), default=FEW, help=f"rows, 1 to {MOST} (default: {FEW})")
    parser.add_argument("--after", type=whole(0, 2**63 - 1), metavar="ID", help="go on after this row")
