"""The option --reason of the verbs that change schedules."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from scheduling.models.schedule_revision import REASON_LENGTH


def add_reason(parser: ArgumentParser) -> None:
    """The reason of the revision."""
    parser.add_argument("--reason", default="", help="why; the history shows it")


def reason_of(options: Mapping[str, Any]) -> str:
    """The reason in one line, cut to the length that a revision keeps."""
    return " ".join(options["reason"].split())[:REASON_LENGTH]
