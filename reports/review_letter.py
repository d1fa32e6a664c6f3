"""Writes the mail of a review."""

from __future__ import annotations

from collections.abc import Mapping

from django.template.loader import render_to_string
from django.utils.translation import get_language, get_language_bidi
from django.utils.translation import gettext as _

from reports.message import ReportMessage
from scheduling.core.review import Review
from scheduling.notify.links import absolute_url
from scheduling.operations.review_tables import Table, days_in_words, figures, notes, tables, verdict

TEMPLATE = "scheduling/review_letter.html"


def review_letter(review: Review, names: Mapping[int, str], title: str, *, limited: bool = False) -> ReportMessage:
    """The mail: the verdict as the subject, and the tables as a text and as a web page without pictures.

    Args:
        names: the descriptions of schedules, by their ids.
        limited: whether runs of some groups are not counted.
    """
    said = verdict(review)
    remarks = notes(review)
    if limited:
        remarks.insert(0, _("Runs of other groups are not counted."))
    address = absolute_url("admin:scheduling_review_changelist")
    if address:
        address += f"?from={review.range.first.isoformat()}&to={review.range.last.isoformat()}"
    facts = {
        "title": title, "verdict": f"{said[:1].upper()}{said[1:]}", "days": days_in_words(review.range),
        "figures": figures(review), "tables": tables(review, names), "notes": remarks, "address": address,
        "language": get_language() or "en", "direction": "rtl" if get_language_bidi() else "ltr",
    }  # fmt: skip
    return ReportMessage(f"{title}: {said}", _text(facts), render_to_string(TEMPLATE, facts))


def _text(facts: Mapping[str, object]) -> str:
    found: list[str] = [f"{facts['title']}, {facts['days']}", str(facts["verdict"]), ""]
    found += [f"{label}: {value} ({note})" for label, value, note, _bad in facts["figures"]]  # type: ignore[attr-defined]
    for note in facts["notes"]:  # type: ignore[attr-defined]
        found += ["", note]
    for table in facts["tables"]:  # type: ignore[attr-defined]
        found += ["", *_table(table)]
    if facts["address"]:
        found += ["", str(facts["address"])]
    return "\n".join(found) + "\n"


def _table(table: Table) -> list[str]:
    """The table as lines of text, with columns of equal width."""
    lines = [table.title, "-" * len(table.title)]
    if not table.rows:
        return [*lines, table.empty]
    cells = [[column.label for column in table.columns], *([cell.text for cell in row] for row in table.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(table.columns))]
    for row in cells:
        parts = [
            text.rjust(width) if column.is_number else text.ljust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return [*lines, table.note] if table.note else lines
