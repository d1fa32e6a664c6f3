"""The console: what a verb reads from its options and writes to the terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from django.utils.translation import gettext as _
from pydantic import BaseModel

from scheduling.core.text import one_line, visible_text
from scheduling.management.cron import table as tables
from scheduling.management.cron.whose_name import VARIABLE, actor_named, changer, reader
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from scheduling.operations.shapes import VERSION


class Console:
    """Writes results to stdout, and everything else to stderr.

    Args:
        options: those that every verb has: `as_user`, `json` and `no_color`.
    """

    def __init__(self, stdout: TextIO, stderr: TextIO, options: Mapping[str, Any]) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.as_json = bool(options.get("json"))
        self._name = options.get("as_user") or os.environ.get(VARIABLE, "")
        self._actor: Actor | None = None
        no_color = options.get("no_color") or bool(os.environ.get("NO_COLOR"))
        self.colour = not no_color and not self.as_json and _is_terminal(stdout)

    def actor(self, changes: bool = False) -> Actor:
        """In whose name the verb acts.

        Args:
            changes: whether the verb changes something. Only reading needs no name.

        Raises:
            Refused: NOT_FOUND or FORBIDDEN.
        """
        if self._name:
            self._actor = self._actor or actor_named(self._name)
            return self._actor
        return changer() if changes else reader()

    # --- results

    def json(self, kind: str, **fields: Any) -> None:
        """Write one JSON document. Shapes become objects."""
        document = {"version": VERSION, "kind": kind, **{name: _jsonable(value) for name, value in fields.items()}}
        self._write(self.stdout, json.dumps(document, ensure_ascii=False, indent=2, default=str))

    def say(self, text: object = "", tone: str = "") -> None:
        """Write a line of the result. Control characters and line feeds become visible."""
        shown = one_line(text)
        self._write(self.stdout, tables.paint(shown, tone) if self.colour else shown)

    def document(self, text: str) -> None:
        """Write a text of several lines. Control characters become visible."""
        self._write(self.stdout, visible_text(text.removesuffix("\n")))

    def facts(self, pairs: Sequence[tuple[str, object]]) -> None:
        """Write names and values, one pair in a line. Pairs without a value are left out."""
        kept = [(name, tables.plain(value)) for name, value in pairs if value not in (None, "")]
        width = max((len(name) for name, _value in kept), default=0)
        for (name, text), value in zip(kept, [value for _name, value in pairs if value not in (None, "")], strict=True):
            tone = value.tone if isinstance(value, tables.Cell) and self.colour else ""
            self._write(self.stdout, f"{one_line(name).ljust(width)}  {tables.paint(text, tone)}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write a table. If the output is a terminal, or COLUMNS is set, the widest columns are cut until it fits."""
        fits = _is_terminal(self.stdout) or "COLUMNS" in os.environ
        width = shutil.get_terminal_size().columns if fits else None
        for line in tables.lines(columns, rows, width, self.colour):
            self._write(self.stdout, line)

    # --- everything else

    def note(self, text: object) -> None:
        """Write a line to stderr: a hint, or how far the work is."""
        self._write(self.stderr, one_line(text))

    def refused(self, refused: Refused) -> None:
        """Tell why nothing was done, or not all: sentences on stderr, and with --json a document of the kind `refused`.

        If some rows were done before, the document has their ids in `done`.
        """
        if self.as_json:
            problems = [{"field": one.field, "code": one.code, "message": one.message} for one in refused.problems]
            done = {"done": refused.extra["done"]} if "done" in refused.extra else {}
            self.json("refused", code=str(refused.code), said=refused.said, problems=problems, **done)
        if refused.problems:
            for problem in refused.problems:
                self.note(f"{problem.field}: {problem.message}" if problem.field else problem.message)
        else:
            self.note(refused.said)
        if done_before := refused.extra.get("done"):
            self.note(_("Done before that: %(count)s. Give the command again to go on.") % {"count": len(done_before)})

    @property
    def is_interactive(self) -> bool:
        """Whether a person at a terminal can read a question and answer it."""
        return _is_terminal(sys.stdin) and _is_terminal(self.stderr)

    def confirm(self, question: str) -> bool:
        """Ask a question on the terminal. Without a terminal, the answer is no."""
        if not self.is_interactive:
            return False
        self.note(f"{question} [y/N]")
        self.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def pause(self, seconds: float) -> None:
        """Wait between two looks at a run. A test replaces it."""
        time.sleep(seconds)

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        stream.write(f"{text}\n")


def _is_terminal(stream: TextIO) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())


def _jsonable(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    return value
