"""The columns that determine whether two executions of a schedule may be open at the same time."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.overlap import Overlap, runs_alone, waits_its_turn

SERVICE_OVERLAP = _("A service never runs twice, so nothing can wait for its end or replace it. Choose another one.")
SERVICE_TARGET = _("Only a worker can be a service. A report or a reminder comes to an end.")

OPEN_COLUMNS = ("open_run", "open_skip", "waiting_run")
"""The columns that `policies.overlap` writes. `Scheduler.save` leaves them alone."""


class OverlapModel(models.Model):
    """A schedule that may be a service, and may leave out an occurrence while an earlier execution is not over."""

    stay_alive = models.BooleanField(
        _("service"),
        default=False,
        db_default=False,
        help_text=_(
            "The run should never end: if it ends, it is started again, until the schedule is paused. It needs a "
            "consumer of its own (run_worker --standalone)."
        ),
    )
    overlap = models.CharField(
        _("overlap"),
        max_length=8,
        choices=[
            (Overlap.ALLOW.value, _("run it, too")),
            (Overlap.SKIP.value, _("leave the new run out")),
            (Overlap.WAIT.value, _("let the newest run wait")),
            (Overlap.REPLACE.value, _("cancel the old run")),
        ],
        default=Overlap.ALLOW.value,
        db_default=Overlap.ALLOW.value,
        help_text=_("What happens when a run is due and the run before it is not over. A service never runs twice."),
    )
    open_run = models.PositiveBigIntegerField(null=True, editable=False)
    """The id of the last execution that was let in, if the schedule runs alone. NULL if it is not known."""
    open_skip = models.PositiveBigIntegerField(null=True, editable=False)
    """The id of the skipped execution that counts the occurrences left out because of `open_run`. NULL if there is
    none."""
    waiting_run = models.PositiveBigIntegerField(null=True, editable=False)
    """The id of the last execution that had to wait until `open_run` is over. NULL if none has, or if it is let in."""

    class Meta:
        abstract = True

    @property
    def runs_alone(self) -> bool:
        """Whether at most one execution of the schedule may wait or run."""
        return runs_alone(self.overlap, self.stay_alive)

    def overlap_errors(self) -> dict[str, ValidationError]:
        """The error of a service that would have to wait for itself; empty if there is none."""
        if self.stay_alive and waits_its_turn(self.overlap, stay_alive=False):
            return {"overlap": ValidationError(SERVICE_OVERLAP, code="overlap")}
        return {}
