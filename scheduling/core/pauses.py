"""Which runs do not start, because their handler, their queue or the whole site is paused.

What runs goes on to its end. What waits waits, and nothing is lost. A pause of a schedule is another thing: it leaves
occurrences out (`execution.pauses`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scheduling.core import wait_sentences as say
from scheduling.core.text import visible_text

LONGEST_WAIT = timedelta(hours=1)
"""A run that has met a pause is offered again after so long, even if the end of the pause has not been noticed."""

SPREAD_SECONDS = 600
"""The runs that wait are offered again at different times within so many seconds, because there may be many."""

REASON_LENGTH = 500


class Scope(StrEnum):
    """What a pause stops."""

    SITE = "site"
    QUEUE = "queue"
    HANDLER = "handler"


@dataclass(frozen=True)
class WorkPause:
    """A pause.

    Args:
        type: the type of the handler, such as `worker`; empty for the other scopes.
        name: the name of the handler or of the queue; empty for the whole site.
        by: the name of the user.
        until: when it ends by itself; None if a person ends it.
    """

    scope: Scope
    type: str
    name: str
    reason: str
    by: str
    until: datetime | None = None

    def stops(self, type_: str, handler: str, queue: str) -> bool:
        """Whether a run does not start.

        Args:
            queue: the name of its queue, without the priority.
        """
        match self.scope:
            case Scope.SITE:
                return True
            case Scope.QUEUE:
                return self.name == queue
        return (self.type, self.name) == (type_, handler)

    def is_over(self, now: datetime) -> bool:
        """Whether it has ended by itself."""
        return self.until is not None and self.until <= now

    def offered_at(self, now: datetime, number: int) -> datetime:
        """When a run that has met this pause is offered again.

        Args:
            number: any number of the run, by which the runs are spread.
        """
        latest = now + LONGEST_WAIT - timedelta(seconds=number % SPREAD_SECONDS)
        return latest if self.until is None else min(latest, self.until)

    def sentence(self) -> str:
        """Why a run waits."""
        subject = {Scope.SITE: "Everything", Scope.QUEUE: f"The queue {self.name!r}"}.get(
            self.scope, f"The {self.type} {self.name!r}"
        )
        facts = {"subject": subject, "by": self.by, "reason": self.reason.rstrip(".")}
        if self.until is None:
            said = (say.PAUSED_BY if self.by else say.PAUSED).format(**facts)
        else:
            template = say.PAUSED_BY_UNTIL if self.by else say.PAUSED_UNTIL
            said = template.format(**facts, until=f"{self.until:%Y-%m-%d %H:%M:%S} UTC")
        return visible_text(said, REASON_LENGTH + 400)


def pause_of(pauses: Iterable[WorkPause], type_: str, handler: str, queue: str, now: datetime) -> WorkPause | None:
    """The pause for which a run waits: the one with the widest scope; None if the run may start."""
    order = list(Scope)
    found = [each for each in pauses if not each.is_over(now) and each.stops(type_, handler, queue)]
    return min(found, key=lambda each: order.index(each.scope), default=None)
