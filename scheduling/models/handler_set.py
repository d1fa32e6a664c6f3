"""HandlerSet and KnownHandler: the handlers that the processes of one version of the code know."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class HandlerSet(models.Model):
    """The handlers of one version of the code. All processes that know the same handlers share one set.

    The set has a table of its own and is written once, when the first process of a version starts. In the row of a
    process, 1,000 handlers would be read with every list of processes and written with every heartbeat. One row for
    each process and handler would be a million rows for 1,000 processes.
    """

    digest = models.CharField(max_length=64, unique=True)
    """The hash of all handlers with their contracts."""
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("set of handlers")
        verbose_name_plural = _("sets of handlers")
        default_permissions = ()

    def __str__(self) -> str:
        return self.digest[:12]


class KnownHandler(models.Model):
    """A handler of a set, with the hash of its params contract. The row never changes.

    A listener has the type `topic`, and as its name the topic, a space and its own name.
    """

    handler_set = models.ForeignKey(HandlerSet, on_delete=models.CASCADE, related_name="known", db_index=False)
    type = models.CharField(max_length=8)
    name = models.CharField(max_length=201)
    contract = models.CharField(max_length=32)

    class Meta:
        verbose_name = _("known handler")
        verbose_name_plural = _("known handlers")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["handler_set", "type", "name"], name="scheduling_known_handler_once")
        ]
        indexes = [models.Index(fields=["type", "name"], name="scheduling_known_handler")]

    def __str__(self) -> str:
        return f"{self.type} {self.name}"
