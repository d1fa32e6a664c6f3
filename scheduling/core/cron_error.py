"""The error about an expression that is refused."""

from __future__ import annotations

from scheduling.core.words import gettext as _
from scheduling.core.words import pgettext


class CronError(ValueError):
    """A cron expression is invalid or never fires again. The message is a sentence for the author of the expression.

    ``field`` is the name of the invalid field ("minute", "hour", "day of month", "month", "weekday", or the part of an
    interval: "interval", "on", "at", "from"). It is None if the error does not concern a single field.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def part_error(part: str, sentence: str) -> CronError:
    """The error about one field of an expression, or about one part of an interval."""
    names = {
        "minute": _("Minute"),
        "hour": _("Hour"),
        "day of month": _("Day of month"),
        "month": _("Month"),
        "weekday": _("Weekday"),
        "interval": _("Interval"),
        "on": pgettext("a part of an interval", "On"),
        "at": pgettext("a part of an interval", "At"),
        "from": pgettext("a part of an interval", "From"),
    }
    return CronError(f"{names.get(part) or part.capitalize()}: {sentence}", part)


def quote(text: str) -> str:
    """The text in quotation marks, cut to 40 characters."""
    return f"'{text}'" if len(text) <= 40 else f"'{text[:40]}...'"
