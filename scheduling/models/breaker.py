"""Breaker: what all processes know of the circuit breaker of one handler."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.breaker import ERROR_LENGTH, REASON_LENGTH, BreakerState, Circuit
from scheduling.core.text import visible_text


class Breaker(models.Model):
    """The circuit breaker of a handler that has the option `breaker`. The first run that ends makes the row."""

    class States(models.TextChoices):
        CLOSED = BreakerState.CLOSED.value, _("closed")
        OPEN = BreakerState.OPEN.value, _("open")
        HALF_OPEN = BreakerState.HALF_OPEN.value, _("half open")

    type = models.CharField(_("type"), max_length=20)
    """The type of the handler, such as `worker`."""
    name = models.CharField(_("name"), max_length=100)
    """The name of the handler."""
    state = models.CharField(_("state"), max_length=10, choices=States, default=BreakerState.CLOSED.value)
    since = models.DateTimeField(_("since"), null=True, blank=True)
    """Since when it is in this state; NULL if it has never opened."""
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH, blank=True, default="")
    """Why it has opened."""
    error = models.CharField(_("last error"), max_length=ERROR_LENGTH, blank=True, default="")
    openings = models.PositiveIntegerField(_("times opened"), default=0)
    counts = models.JSONField(default=list)
    """For each part of the window: its number, how many runs ended in it, and how many of them failed."""
    probe = models.PositiveBigIntegerField(_("probe"), null=True, blank=True)
    """The execution that was let through as a probe and has not ended."""
    probed_at = models.DateTimeField(_("last probe"), null=True, blank=True)
    granted = models.JSONField(default=list)
    """The executions that were let through and have not started."""
    released = models.PositiveIntegerField(_("let through"), default=0)
    """How many runs were let through since it is half open."""
    used_at = models.DateTimeField(_("last used"))
    """When a run was counted last. Retention removes rows that are not used any longer."""

    objects: ClassVar[models.Manager[Breaker]] = models.Manager()

    class Meta:
        verbose_name = _("circuit breaker")
        verbose_name_plural = _("circuit breakers")
        ordering = ["type", "name"]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["type", "name"], name="scheduling_breaker_once")]

    def __str__(self) -> str:
        return self.subject

    @property
    def subject(self) -> str:
        """The handler, as pages show it."""
        return f"{visible_text(self.type, 20)} {visible_text(self.name, 100)}"

    def circuit(self) -> Circuit:
        """The values that decide.

        Raises:
            TypeError, ValueError: plain SQL has written values that cannot be used.
        """
        counts = tuple((_whole(number), _whole(ended), _whole(failed)) for number, ended, failed in self.counts)
        return Circuit(
            BreakerState(self.state),
            _utc(self.since),
            counts,
            self.probe,
            _utc(self.probed_at),
            tuple(map(_whole, self.granted)),
            _whole(self.released),
            _whole(self.openings),
            str(self.reason),
            str(self.error),
        )

    def take(self, circuit: Circuit) -> None:
        """Take over the values that decide."""
        self.state, self.since, self.probed_at = circuit.state.value, circuit.since, circuit.probed_at
        self.counts, self.granted = [list(each) for each in circuit.counts], list(circuit.granted)
        self.probe, self.released, self.openings = circuit.probe, circuit.released, circuit.openings
        self.reason, self.error = circuit.reason[:REASON_LENGTH], circuit.error[:ERROR_LENGTH]


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a whole number: {value!r:.50}")
    return value
