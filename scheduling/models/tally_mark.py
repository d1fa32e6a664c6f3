"""TallyMark: the one row that says which attempts are tallied."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

ONLY = 1
"""The primary key of the row."""


class TallyMark(models.Model):
    """One row. It is changed in the transaction that counts the attempts, so that each attempt is counted once.

    All columns are whole numbers, because the driver of each database can read each number that plain SQL can write.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY, editable=False)
    attempt = models.PositiveBigIntegerField(_("last tallied attempt"), default=0)
    """The attempts up to this primary key are tallied. So are later ones that retention has removed."""
    seen = models.PositiveBigIntegerField(_("newest attempt seen"), default=0)
    """The attempts up to this primary key may be tallied a minute after `seen_at`."""
    seen_at = models.PositiveBigIntegerField(_("seen"), default=0)
    """When `seen` was the newest attempt, by the database's clock, in seconds since 1970."""

    objects: ClassVar[models.Manager[TallyMark]] = models.Manager()

    class Meta:
        verbose_name = _("mark of the tallies")
        verbose_name_plural = _("mark of the tallies")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.attempt)
