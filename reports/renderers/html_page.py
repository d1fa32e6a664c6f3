"""Writes the rows of a report as a web page with one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from html import escape
from typing import IO, Any

from django.utils.translation import get_language, get_language_bidi
from django.utils.translation import gettext as _

from reports.renderers.cells import cell, cell_text
from reports.renderers.renderer import TextRenderer

# The policy is a second defence. If a text were not escaped, its scripts would not run and its pictures would not load.
PAGE = """<!DOCTYPE html>
<html lang="{language}" dir="{direction}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #c8ccd0; --head: #eef0f2; }}
@media (prefers-color-scheme: dark) {{ :root {{ --line: #4a4f55; --head: #26292d; }} }}
body {{ margin: 1rem; font: 14px/1.4 system-ui, sans-serif; background: Canvas; color: CanvasText; }}
table {{ border-collapse: collapse; }}
th, td {{ border: 1px solid var(--line); padding: .25rem .5rem; text-align: start; vertical-align: top; }}
th, td {{ white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; min-width: 4ch; max-width: 60ch; }}
thead th {{ position: sticky; top: 0; background: var(--head); }}
td.n {{ text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
<h1>{title}</h1>
<table>
<thead><tr>{heading}</tr></thead>
<tbody>
"""
END = "</tbody>\n</table>\n</body>\n</html>\n"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters that HTML does not allow. Tabs and line ends are allowed."""


def html_text(text: str) -> str:
    """Return the text as HTML that shows it. Control characters are replaced."""
    return escape(_CONTROL.sub("\ufffd", text))


class HtmlRenderer(TextRenderer):
    """Writes one page in UTF-8 that needs no other file. It has a table and a small style sheet, and no script.

    All text is escaped. The page is light or dark, as the reader's system asks. Numbers are aligned at their end.
    """

    extension = "html"

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], *, title: str = "", byte_order_mark: bool = False
    ) -> None:
        super().__init__(file, columns, title=title)
        heading = "".join(f'<th scope="col">{html_text(column)}</th>' for column in self.columns)
        self.text.write(
            PAGE.format(
                language=html_text(get_language() or "en"),
                direction="rtl" if get_language_bidi() else "ltr",
                title=html_text(title or _("Report")),
                heading=heading,
            )
        )

    def write(self, row: Sequence[Any]) -> None:
        """Append one row of the table."""
        self.text.write(f"<tr>{''.join(map(_table_cell, row))}</tr>\n")

    def finish(self) -> None:
        self.text.write(END)
        super().finish()


def _table_cell(value: Any) -> str:
    found = cell(value)
    is_number = isinstance(found, int | float | Decimal) and not isinstance(found, bool)
    return f"<td{' class=n' if is_number else ''}>{html_text(cell_text(found))}</td>"
