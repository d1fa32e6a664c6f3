"""Reads the recipes of docs/operations/monitoring.md, so that a test runs what stands there."""

from __future__ import annotations

import re

from tests.support import ROOT

FOLDER = ROOT / "docs" / "operations"
PAGE = FOLDER / "monitoring.md"
SHOP = "/srv/shop"
"""The folder of the project in the examples."""


def blocks(kind: str) -> list[str]:
    """The blocks of the page with this kind, such as `sql` or `sh broker`, without blank lines around them."""
    return [
        found.strip() for found in re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    ]


def cron_lines() -> list[tuple[str, str]]:
    """The lines for a crontab: the five fields, and the command."""
    found = []
    for line in "\n".join(blocks("cron")).splitlines():
        fields = line.split(maxsplit=5)
        found.append((" ".join(fields[:5]), fields[5]))
    return found
