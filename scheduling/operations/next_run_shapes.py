"""The shapes of runs to come, of what an edit changes, and of the load of the next day."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from scheduling.operations.shapes import Shape


class OccurrenceShape(Shape):
    """Occurrences to come of a schedule that is spread, bounded or has a calendar. They share their fate."""

    at: datetime = Field(description="The nominal instant of the first of them, which its execution key has.")
    last: datetime | None = Field(description="That of the last of them; null if they go on for ever.")
    count: int
    fate: str = Field(description="runs, excluded or held.")
    starts_at: datetime | None = Field(description="When the last of them starts; null if none of them starts.")
    reason: str = Field(description="What the calendar says; empty if none excludes or holds them.")


class NextRunsShape(Shape):
    """The next runs of a schedule. Those of a paused schedule take place only if it is resumed."""

    schedule_id: int
    words: str = Field(description="The schedule in English, such as `At 08:00`.")
    timezone: str
    is_active: bool
    runs: list[datetime]
    occurrences: list[OccurrenceShape] = Field(
        description="Of a schedule that is spread, bounded or has a calendar: what becomes of its next occurrences."
    )
    problem: str = Field(description="Why the runs cannot be told; empty if they can.")


class RunChangeShape(Shape):
    """A run before and after an edit. At most one of the two is null."""

    before: datetime | None
    after: datetime | None
    mark: str = Field(description="same, changed, added or removed.")


class MinuteShape(Shape):
    """A minute of the next 24 hours, and how many schedules start in it."""

    at: datetime
    without: int = Field(description="Without the edit.")
    with_it: int = Field(description="With the edit.")
    own: bool = Field(description="Whether the edited schedule starts in it.")


class EmptierShape(Shape):
    """A minute in which fewer schedules start."""

    at: datetime
    starts: int


class LoadShape(Shape):
    """How crowded the next 24 hours are, as far as the caller sees the schedules."""

    until: datetime = Field(description="Up to here the minutes were counted.")
    is_cut: bool = Field(description="Whether this is earlier, because more schedules are due than are looked at.")
    minutes: list[MinuteShape] = Field(description="The most crowded ones.")
    busiest: MinuteShape | None = Field(description="The most crowded one in which the edited schedule starts.")
    emptier: list[EmptierShape] = Field(description="Emptier minutes near the busiest one, the best first.")


class PreviewShape(Shape):
    """What an edit would change. Nothing was stored."""

    schedule_id: int | None
    before: list[datetime] = Field(description="The next 20 runs without the edit; none for a paused schedule.")
    after: list[datetime]
    changes: list[RunChangeShape] = Field(description="Both side by side, up to the earlier one of the two ends.")
    load: LoadShape
