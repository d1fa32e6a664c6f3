"""Writes the rows of a report as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.renderers.json_lines import json_object
from reports.renderers.renderer import TextRenderer


class JsonRenderer(TextRenderer):
    """Writes one array of objects, in UTF-8, with one object in each line. Without rows, the array is empty."""

    extension = "json"

    _before = "[\n"

    def write(self, row: Sequence[Any]) -> None:
        """Append one object."""
        self.text.write(self._before + json_object(self.columns, row))
        self._before = ",\n"

    def finish(self) -> None:
        self.text.write("[]\n" if self._before == "[\n" else "\n]\n")
        super().finish()
