"""Remembers when the database answered without a break, as windows of time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Window:
    """A time during which the database answered without a break: its first and its last answer, in seconds."""

    first: float
    last: float


class AnswerWindows:
    """The newest windows in which the database answered, for the question when a lease must have ended to be lost.

    Args:
        enough_seconds: how much time in windows the owner of a lease needs, after its lease has ended.
        unsure_seconds: the first seconds of each window count for nothing, because the owner may not have tried again
            yet. It tries at least once in this time, so a window that counts at all has had a try.
    """

    def __init__(self, enough_seconds: float, unsure_seconds: float) -> None:
        self._enough, self._unsure = enough_seconds, unsure_seconds
        self._windows: list[Window] = []

    def answered(self, now: float, *, after_break: bool) -> None:
        """Note an answer.

        Args:
            after_break: whether a new window begins.
        """
        if after_break or not self._windows:
            self._windows = [*self._needed(), Window(now, now)]
        self._windows[-1].last = now

    def enough_since(self) -> float | None:
        """The latest instant from which the windows add up to enough time; None if all of them are not enough."""
        missing = self._enough
        for window in reversed(self._windows):
            counted = self._counted(window)
            if counted >= missing > 0:
                return window.last - missing
            missing -= counted
        return None

    def _counted(self, window: Window) -> float:
        return max(0.0, window.last - window.first - self._unsure)

    def _needed(self) -> list[Window]:
        """The newest windows that count and that are enough together, oldest first."""
        found: list[Window] = []
        missing = self._enough
        for window in reversed(self._windows):
            if missing > 0 and self._counted(window) > 0:
                found.insert(0, window)
                missing -= self._counted(window)
        return found
