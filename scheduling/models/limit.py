"""LimitKey, LoweredLimit and LimitPlace: the limits of handlers, and the runs that have a place or wait for one."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.run_limit import LONGEST_KEY
from scheduling.core.text import visible_text

LONGEST_REASON = 500


class LimitKey(models.Model):
    """One key of a limited handler. Its row is locked while places are given."""

    type = models.CharField(_("type"), max_length=20)
    name = models.CharField(_("name"), max_length=100)
    key = models.CharField(_("key"), max_length=LONGEST_KEY, blank=True, default="")
    """The text of the key; empty if the limit holds for all runs of the handler."""
    digest = models.CharField(max_length=64)
    """The hash of the key. Databases compare texts without case and accents."""
    started = models.JSONField(default=list)
    """When the last runs started, in seconds since 1970, ascending. Empty without a limit of starts."""
    used_at = models.DateTimeField(_("last used"))
    """When a place was taken last. Retention removes rows that are not used any longer."""

    objects: ClassVar[models.Manager[LimitKey]] = models.Manager()

    class Meta:
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        ordering = ["type", "name", "key"]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["type", "name", "digest"], name="scheduling_limit_key_once")]

    def __str__(self) -> str:
        return self.subject

    @property
    def subject(self) -> str:
        """The handler and the key, as pages show them."""
        key = f" {visible_text(self.key, LONGEST_KEY)}" if self.key else ""
        return f"{visible_text(self.type, 20)} {visible_text(self.name, 100)}{key}"


class LoweredLimit(models.Model):
    """Lower numbers than those of the code, for all keys of a handler. Numbers that are higher change nothing."""

    type = models.CharField(_("type"), max_length=20)
    name = models.CharField(_("name"), max_length=100)
    at_once = models.PositiveIntegerField(_("runs at once"), null=True, blank=True, validators=[MinValueValidator(1)])
    starts = models.PositiveIntegerField(_("starts"), null=True, blank=True, validators=[MinValueValidator(1)])
    reason = models.CharField(_("reason"), max_length=LONGEST_REASON)
    lowered_by = models.CharField(_("lowered by"), max_length=150, blank=True, default="")
    lowered_at = models.DateTimeField(_("lowered"))

    objects: ClassVar[models.Manager[LoweredLimit]] = models.Manager()

    class Meta:
        verbose_name = _("lowered limit")
        verbose_name_plural = _("lowered limits")
        ordering = ["type", "name"]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["type", "name"], name="scheduling_lowered_limit_once")]

    def __str__(self) -> str:
        return f"{visible_text(self.type, 20)} {visible_text(self.name, 100)}"


class LimitPlace(models.Model):
    """A run of a limited handler that waits for a place, was given one, or holds one."""

    class States(models.TextChoices):
        WAITING = "waiting", _("waiting")
        GRANTED = "granted", _("let through")
        HELD = "held", _("running")

    # Without constraints in the database: an insert would lock the rows of the key and of the execution, in an order in
    # which two processes could wait for each other. Sweeps remove places whose execution is gone.
    execution = models.OneToOneField(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, primary_key=True, related_name="place",
        db_constraint=False,
    )  # fmt: skip
    limit = models.ForeignKey(
        LimitKey, on_delete=models.CASCADE, related_name="places", db_constraint=False, db_index=False
    )
    state = models.CharField(_("state"), max_length=8, choices=States)
    attempt = models.PositiveIntegerField(_("attempt"), null=True, blank=True)
    """The attempt that holds the place; NULL if none has started with it."""
    since = models.DateTimeField(_("since"))

    objects: ClassVar[models.Manager[LimitPlace]] = models.Manager()

    class Meta:
        verbose_name = _("place")
        verbose_name_plural = _("places")
        default_permissions = ()
        ordering = ["since", "pk"]
        indexes = [models.Index(fields=["limit", "state", "since", "execution"], name="scheduling_place_turn")]

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"
