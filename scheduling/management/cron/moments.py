"""Instants as the command writes them."""

from __future__ import annotations

from datetime import datetime, tzinfo

from scheduling.operations.times import EMPTY, format_due, format_minute


def moment(instant: datetime | None, zone: tzinfo | None = None) -> str:
    """The instant to the minute, with the zone's abbreviation; `-` if there is none.

    Args:
        zone: that of a schedule; None: the site's.
    """
    return EMPTY if instant is None else format_minute(instant, zone)


def due_moment(instant: datetime | None, zone: tzinfo | None = None) -> str:
    """The instant of an occurrence, with the seconds if they are not 0; `-` if there is none."""
    return EMPTY if instant is None else format_due(instant, zone)
