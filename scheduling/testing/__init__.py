"""For the tests of a project: run handlers in the process of the test, and let schedules fall due (docs/testing.md)."""

from scheduling.testing.assertions import assert_not_scheduled, assert_scheduled
from scheduling.testing.attached import AttachedFile
from scheduling.testing.drain import drain
from scheduling.testing.inline_fleet import NeverEmpty, NotTheDatabaseTransport
from scheduling.testing.outcome import OutputLine, RunOutcome
from scheduling.testing.run_inline import run_inline
from scheduling.testing.travel import Clock, travel

__all__ = [
    "AttachedFile",
    "Clock",
    "NeverEmpty",
    "NotTheDatabaseTransport",
    "OutputLine",
    "RunOutcome",
    "assert_not_scheduled",
    "assert_scheduled",
    "drain",
    "run_inline",
    "travel",
]
