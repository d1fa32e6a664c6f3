"""RunStep: what an execution has finished, so that its next attempt does not do it again."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.steps import LONGEST_NAME


class RunStep(models.Model):
    """A finished step of an execution with its result, or a cursor with its position.

    The row is written in the same transaction as the work that it stands for (`execution.steps`).
    """

    class Kind(models.TextChoices):
        STEP = "step", _("step")
        CURSOR = "cursor", _("cursor")

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    name = models.CharField(_("name"), max_length=LONGEST_NAME)
    value = models.TextField(_("value"), blank=True, default="")
    """The result of the step, or the position of the cursor, as JSON (`core.results`); empty for None."""
    attempt = models.PositiveIntegerField(_("attempt"))
    stored_at = models.DateTimeField(_("stored"))

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        default_permissions = ()
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["execution", "kind", "name"], name="scheduling_run_step_once")]

    def __str__(self) -> str:
        return f"{self.execution_id} {self.name}"
