"""Runs `manage.py cron` in the process of a test."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import call_command


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def cron(*arguments: object, terminal: bool = False, typed: str | None = None) -> Ended:
    """Run a verb with its arguments.

    Args:
        terminal: whether stdout is a terminal.
        typed: what a person types; then stdin and stderr are a terminal.
    """
    out, err, code = Terminal() if terminal else io.StringIO(), io.StringIO() if typed is None else Terminal(), 0
    with pytest.MonkeyPatch.context() as patch:
        if typed is not None:
            patch.setattr(sys, "stdin", Terminal(typed))
        try:
            call_command("cron", *map(str, arguments), stdout=out, stderr=err)
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())
