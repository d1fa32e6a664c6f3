"""Judges how far a host's clock is from the clock of the database server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Skew:
    """The difference between two clocks, and how exact it is.

    Args:
        seconds: how far this host's clock is ahead of the server's; negative if it is behind.
        uncertainty: the real difference may be smaller or greater by this many seconds, because the server may have
            read its clock at any time while this host waited for the answer.
    """

    seconds: float = 0.0
    uncertainty: float = 0.0

    @property
    def certain(self) -> float:
        """How many seconds the clocks differ at least."""
        return max(0.0, abs(self.seconds) - self.uncertainty)

    def __str__(self) -> str:
        """For example `2.3 s behind` or `2.3 s ahead of`, in front of the name of the other clock."""
        return f"{abs(self.seconds):.1f} s {'ahead of' if self.seconds > 0 else 'behind'}"


def skew(before: float, theirs: float, after: float) -> Skew:
    """Compare two clocks.

    Args:
        before: this host's time before it asked the server, in epoch seconds.
        theirs: the server's time, in epoch seconds.
        after: this host's time after the answer, in epoch seconds.
    """
    return Skew((before + after) / 2 - theirs, (after - before) / 2)
