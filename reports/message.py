"""ReportMessage: what the mail of a report says besides its files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportMessage:
    """The words of the mail.

    Args:
        subject: one line.
        text: the plain text. The names of the files follow it.
        html: the same as a web page; empty for a mail of plain text only. Most mail programs load no pictures and run
            no scripts.
    """

    subject: str
    text: str
    html: str = ""
