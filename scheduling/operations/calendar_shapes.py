"""The shapes of calendars."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from scheduling.operations.shapes import Shape


class CalendarShape(Shape):
    """A calendar, without its entries."""

    id: int
    name: str
    description: str
    timezone: str = Field(description="The zone of its entries. Empty: CRON_TIMEZONE.")
    group: str | None
    problem: str = Field(description="Why it cannot be used; empty if it can. No schedule that names it runs then.")
    created_at: datetime
    updated_at: datetime
    version: str = Field(description="Changes with each edit; the ETag without its quotation marks.")


class ExclusionShape(Shape):
    """A time at which schedules with the calendar do not run. Entries that overlap or touch are joined."""

    start: datetime
    until: datetime | None = Field(description="Null: it never ends.")
    reasons: list[str]


class CalendarDetail(CalendarShape):
    """A calendar with its entries, and what it excludes in the next 12 months."""

    entries: str = Field(description="One entry a line.")
    exclusions: list[ExclusionShape] = Field(description="The next ones, at most 20.")
