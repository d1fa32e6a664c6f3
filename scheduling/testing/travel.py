"""A simulated clock for tests: schedules, retries and handlers see its time, and what falls due runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.utils import timezone

from scheduling.testing.inline_fleet import MOST_RUNS, InlineFleet
from scheduling.testing.outcome import RunOutcome

if TYPE_CHECKING:
    from time_machine import Traveller

When = str | datetime | timedelta
"""An instant as ISO text or as datetime, or a span of time from now on."""


class Clock:
    """The simulated clock. It stands still until it is moved.

    Args:
        zone: the zone of instants that have none.
    """

    def __init__(self, traveller: Traveller, zone: ZoneInfo | None) -> None:
        self._traveller, self._zone = traveller, zone

    @property
    def now(self) -> datetime:
        """The time that the code of the test sees, in UTC."""
        return timezone.now()

    def jump(self, to: When | None = None, **span: float) -> None:
        """Move the clock, and run nothing, as if all producers and consumers were stopped meanwhile.

        Args:
            to: the new time, or how far to move.
            span: how far to move, as the arguments of `timedelta`, such as `days=3`.
        """
        self._traveller.move_to(self._instant(to, span))

    def forward(
        self,
        to: When | None = None,
        *,
        services: bool = False,
        raise_errors: bool = True,
        most_runs: int = MOST_RUNS,
        **span: float,
    ) -> list[RunOutcome]:
        """Move the clock, and run everything that falls due meanwhile, at its instant and in this order.

        Args:
            to: the new time, or how far to move.
            span: how far to move, as the arguments of `timedelta`, such as `days=31`. A day always has 24 hours.
            services, raise_errors, most_runs: see `drain`.

        Returns:
            The runs, in the order in which they ran.

        Raises:
            ValueError: the new time is in the past of this clock.
            NotTheDatabaseTransport, NeverEmpty, Held: see `drain`.
        """
        end = self._instant(to, span)
        if end < self.now:
            raise ValueError(f"The clock is at {self.now}; forward() moves only to later instants, not to {end}.")
        with InlineFleet(services=services, raise_errors=raise_errors, most_runs=most_runs) as fleet:
            found = list(fleet.work())
            while (instant := fleet.next_instant()) is not None and instant <= end:
                self._traveller.move_to(instant)
                found += fleet.work()
        self._traveller.move_to(max(end, self.now))
        return found

    def _instant(self, to: When | None, span: dict[str, float]) -> datetime:
        if (to is None) == (not span):
            raise ValueError("Give either an instant, or a span such as days=1.")
        return _instant_of(timedelta(**span) if to is None else to, self._zone)


def _instant_of(to: When, zone: ZoneInfo | None) -> datetime:
    if isinstance(to, timedelta):
        return timezone.now() + to
    found = datetime.fromisoformat(to) if isinstance(to, str) else to
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone or timezone.get_current_timezone())
    return found.astimezone(UTC)


@contextmanager
def travel(to: When, *, tz: str = "") -> Iterator[Clock]:
    """Let the code inside the `with` block see a simulated clock, which begins at an instant and stands still.

    The clock of the database server does not change; no code of this package asks for it in a test.

    Args:
        to: where the clock begins.
        tz: the zone of instants that have none, such as `Europe/Berlin`. Without it, it is Django's current zone.

    Raises:
        ImportError: time-machine is not installed.
        zoneinfo.ZoneInfoNotFoundError: there is no such zone.
    """
    try:
        from time_machine import travel as travel_in_time
    except ImportError as error:
        raise ImportError('travel() needs time-machine: pip install "cronsite[testing]"') from error
    zone = ZoneInfo(tz) if tz else None
    with travel_in_time(_instant_of(to, zone), tick=False) as traveller:
        yield Clock(traveller, zone)
