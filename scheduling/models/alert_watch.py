"""AlertWatch: the one row that says which process evaluates the alerts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

ONLY = 1
"""The primary key of the row."""


def instant_of(seconds: int) -> datetime | None:
    """The instant of a number of this table; None if plain SQL has written one that no clock shows."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class AlertWatch(models.Model):
    """One row. The process that holds it evaluates the rules and sends the messages. No other process does.

    The instants are whole numbers, because the driver of each database can read each number that plain SQL can write.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY, editable=False)
    holder = models.CharField(_("process"), max_length=128, blank=True, default="")
    until = models.PositiveBigIntegerField(_("held until"), default=0)
    """By the database's clock, in seconds since 1970."""
    evaluated_at = models.PositiveBigIntegerField(_("last evaluation"), default=0)
    """When the last evaluation ended, by the database's clock, in seconds since 1970."""
    heartbeat_at = models.PositiveBigIntegerField(_("last heartbeat to the monitor"), default=0)
    """When a heartbeat was last delivered, by the database's clock, in seconds since 1970. 0 if none was, or if the
    process that evaluates has no CRON_HEARTBEAT_URL."""
    heartbeat_error = models.CharField(_("error of the heartbeat"), max_length=300, blank=True, default="")
    """Why the last heartbeat was not delivered; empty if it was."""

    objects: ClassVar[models.Manager[AlertWatch]] = models.Manager()

    class Meta:
        verbose_name = _("alert watch")
        verbose_name_plural = _("alert watch")
        default_permissions = ()

    def __str__(self) -> str:
        return self.holder
