"""RefusedRow: a row of another table that the database refuses to change."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

REMEMBERED = timedelta(minutes=5)
"""A row that was refused again within this time is still refused. Every process tries it once a minute."""


class RefusedRowQuerySet(models.QuerySet["RefusedRow"]):
    """Filters of refused rows."""

    def present(self, now: datetime) -> RefusedRowQuerySet:
        """The rows that are still refused, the oldest first."""
        return self.filter(tried_at__gte=now - REMEMBERED).order_by("since", "id")

    def past(self, now: datetime) -> RefusedRowQuerySet:
        """The rows that are no longer refused: they were mended or deleted, or no process runs."""
        return self.filter(tried_at__lt=now - REMEMBERED)


class RefusedRow(models.Model):
    """A schedule or an execution that cannot even be marked as unusable, so that every process leaves it out.

    For example, a trigger of the project refuses each change of the row, or a CHECK constraint that was off when the
    row was written. The row's own table cannot record this, so this table does.
    """

    class Kind(models.TextChoices):
        SCHEDULER = "scheduler", _("schedule")
        EXECUTION = "execution", _("execution")

    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    row_id = models.BigIntegerField(_("row"))
    error = models.CharField(_("error"), max_length=500)
    since = models.DateTimeField(_("refused since"))
    tried_at = models.DateTimeField(_("last tried"), db_index=True)

    objects: ClassVar[models.Manager[RefusedRow]] = RefusedRowQuerySet.as_manager()

    class Meta:
        verbose_name = _("refused row")
        verbose_name_plural = _("refused rows")
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["kind", "row_id"], name="scheduling_refused_row_once")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.row_id}"
