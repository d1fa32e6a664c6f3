"""The columns that bound the runs of a schedule: a start deadline, a number of runs, and failures in a row."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.run_bounds import MOST_FAILURES, MOST_RUNS
from scheduling.core.start_deadline import SECONDS
from scheduling.core.words import grouped

COUNTED_RUNS = ("runs_counted", "counted_for")
"""The columns that a claim writes. `Scheduler.save` leaves them alone."""

BOUNDS = {"start_within_seconds": SECONDS, "max_runs": (1, MOST_RUNS), "pause_after_failures": (1, MOST_FAILURES)}
"""The lowest and the highest value of each column."""

RUN_BOUNDS = tuple(BOUNDS)
"""The columns that operators, clients and files may set."""

OUT_OF_BOUNDS = _("It must be a whole number from %(low)s to %(high)s.")
SERVICE_DEADLINE = _("A service has no start deadline: it is started again whenever it ends. Leave this empty.")
SERVICE_FAILURES = _("A service never fails for good: it is started again whenever it ends. Leave this empty.")
ONE_RUN = _("A schedule with one date and time runs once. Leave this empty.")


class RunBounds(models.Model):
    """A row whose runs have bounds. An empty column means no bound."""

    start_within_seconds = models.PositiveIntegerField(
        _("start deadline (s)"),
        null=True,
        blank=True,
        help_text=_("An occurrence that has not started so long after it was due does not run. Empty: no deadline."),
    )
    max_runs = models.PositiveIntegerField(
        _("number of runs"),
        null=True,
        blank=True,
        help_text=_("The schedule is paused after so many runs. Empty: no bound. An edit begins the count anew."),
    )
    pause_after_failures = models.PositiveSmallIntegerField(
        _("pause after failures"),
        null=True,
        blank=True,
        help_text=_("The schedule is paused when so many runs in a row have failed for good. Empty: never."),
    )
    runs_counted = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    """How many occurrences were claimed to run, of those that count towards `counted_for`."""
    counted_for = models.PositiveIntegerField(null=True, editable=False)
    """The `max_runs` that the runs were counted for (`core.run_bounds.runs_before`). NULL: none was counted."""

    class Meta:
        abstract = True

    def bound_errors(self, *, service: bool, one_time: bool) -> dict[str, ValidationError]:
        """Maps the name of each column with a value that cannot be used to the error; empty if all can be used.

        Args:
            service: whether the row is a service.
            one_time: whether the row runs once, at a date and time.
        """
        problems = {}
        for column, (low, high) in BOUNDS.items():
            value = getattr(self, column)
            if value is not None and not (type(value) is int and low <= value <= high):
                facts = {"low": low, "high": grouped(high)}
                problems[column] = ValidationError(OUT_OF_BOUNDS, code="bound", params=facts)
        wrong = {
            "start_within_seconds": (service, SERVICE_DEADLINE),
            "pause_after_failures": (service, SERVICE_FAILURES),
            "max_runs": (one_time, ONE_RUN),
        }
        for column, (is_wrong, sentence) in wrong.items():
            if is_wrong and column not in problems and getattr(self, column) is not None:
                problems[column] = ValidationError(sentence, code="contradiction")
        return problems
