"""Writes the rows of a report as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reports.renderers.cells import plain
from reports.renderers.renderer import TextRenderer


def json_object(columns: Sequence[str], row: Sequence[Any]) -> str:
    """Return a row as a JSON object in one line. Numbers that JSON cannot represent become text."""
    entry = dict(zip(columns, map(plain, row), strict=True))
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)


class JsonLinesRenderer(TextRenderer):
    """Writes one JSON object in each line, in UTF-8."""

    extension = "jsonl"

    def write(self, row: Sequence[Any]) -> None:
        """Append one object."""
        self.text.write(json_object(self.columns, row) + "\n")
