"""Writes what the code knows into the table of docs/configuration.md: `python -m tests.docs.settings_table`.

The code knows the names, most defaults and most bounds. The meaning of a setting is prose, and so is what the code
cannot tell, such as "Django's `TIME_ZONE`". These cells stay as they stand on the page. A new setting gets a row
without a meaning, which a test refuses.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from tests.support import ROOT

PAGE = ROOT / "docs" / "configuration.md"
HEAD = "| name | default | bounds | meaning |\n| --- | --- | --- | --- |\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)+")
CELLS = re.compile(r"(?<!\\)\|")


def written(page: str) -> str:
    """The text of the page with the cells that the code knows."""
    found = TABLE.search(page)
    assert found is not None, "The page has lost the table of settings."
    rows, seen = [], set()
    for line in found[0].removeprefix(HEAD).splitlines():
        name, default, bounds, meaning = (cell.strip() for cell in CELLS.split(line)[1:-1])
        seen.add(setting(name))
        own = known(setting(name))
        rows.append(_row(name, own[0] or default, own[1] or bounds, meaning))
    rows += [_row(f"`{name}`", *known(name), "") for name in names() if name not in seen]
    return page.replace(found[0], HEAD + "".join(rows))


def setting(cell: str) -> str:
    """The name of the setting in the first cell of a row. The cell may say more."""
    return cell.split("`")[1]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def names() -> tuple[str, ...]:
    """The names of all settings, in the order of the code."""
    from scheduling.conf import NAMES

    return NAMES


def known(name: str) -> tuple[str, str]:
    """The default and the bounds of a setting, as the page writes them; empty if the code does not know them."""
    from scheduling import conf
    from scheduling.core.retry import BOUNDS, RetryPolicy
    from scheduling.core.setting_values import number

    for readers, values in ((conf._READERS, conf.Conf), (conf._RETRY_READERS, RetryPolicy)):
        if name in readers:
            attribute, reader = readers[name]
            low, high = BOUNDS.get(attribute, ("", ""))
            bounds = f"{low}-{high}" if reader is number else bounds_of(reader)
            return default_of(values, attribute), bounds
    return "", ""


def default_of(values: type[Any], attribute: str) -> str:
    """The default of a field: a number, a truth value or a word. An empty one, a list, and the time zone are prose."""
    value = next(field.default for field in fields(values) if field.name == attribute)
    if attribute == "timezone" or value in (None, "") or isinstance(value, tuple):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if isinstance(value, str) else str(value)


def bounds_of(reader: Callable[[str, Any], Any]) -> str:
    """The bounds that a reader checks."""
    from scheduling.core import setting_values as read

    if reader is read.flag:
        return "`true` or `false`"
    if reader is read.queue_type:
        return ", ".join(f"`{kind}`" for kind in read.QUEUE_TYPES)
    bound = inspect.getclosurevars(reader).nonlocals
    if "read" in bound:  # an optional number
        return bounds_of(bound["read"])
    if "low" in bound:
        return f"{_spaced(bound['low'])}-{_spaced(bound['high'])}"
    return f"at most {bound['limit']} characters" if "limit" in bound else ""


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def main() -> int:
    """Write the page."""
    import django

    django.setup()
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    sys.exit(main())
