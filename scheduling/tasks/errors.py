"""The errors of attempts that Django's tasks do not raise themselves."""

from __future__ import annotations

from scheduling.core.outcome import NonRetryableError


class ReturnValueInvalid(NonRetryableError, TypeError):
    """A task returned a value that cannot be stored. A retry would return it again, so there is none."""


class AttemptEnded(Exception):
    """Stands in `TaskResult.errors` for an attempt that its function did not end: a time limit, a crash, a cancel."""
