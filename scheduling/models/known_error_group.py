"""KnownErrorGroup: an error group that has been in the failed inbox."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class KnownErrorGroup(models.Model):
    """An error group of one user group. The evaluation of the alerts keeps it, and nothing else reads it.

    `cleanup_executions` removes groups that left the inbox long ago.
    """

    key = models.CharField(max_length=64, unique=True, editable=False)
    """The hash of the fingerprint and of the user group (`core.alerts.error_group_key`)."""
    is_back = models.BooleanField(_("is back"), default=False)
    """Whether all its failures had left the inbox before."""
    left_at = models.DateTimeField(_("has left the inbox"), null=True, blank=True, db_index=True)
    """NULL while it has failures in the inbox."""

    objects: ClassVar[models.Manager[KnownErrorGroup]] = models.Manager()

    class Meta:
        verbose_name = _("known error group")
        verbose_name_plural = _("known error groups")
        ordering = ["id"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.key
