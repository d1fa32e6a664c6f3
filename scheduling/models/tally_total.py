"""TallyTotal: how many attempts of one target have ended since the installation."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.tallies import OUTCOME_CHARS, TARGET_CHARS, TYPE_CHARS
from scheduling.core.text import visible_text
from scheduling.models.tally import Amounts


class TallyTotal(Amounts):
    """The attempts of one target with one outcome and one duration, of all time.

    The row is never removed and its numbers never fall, so that the counters for Prometheus never fall. There are at
    most `core.tallies.MOST_TARGETS` targets and one for all others.
    """

    key = models.CharField(max_length=64, unique=True, editable=False)
    """The hash of type, target, outcome and bucket (`core.tallies.Total`)."""
    target_key = models.CharField(max_length=64, editable=False)
    """The hash of type and target. Databases compare texts without case, accents and spaces at the end."""
    type = models.CharField(_("type"), max_length=TYPE_CHARS)
    target = models.CharField(_("target"), max_length=TARGET_CHARS)
    outcome = models.CharField(_("outcome"), max_length=OUTCOME_CHARS)
    bucket = models.PositiveSmallIntegerField(_("duration"))

    objects: ClassVar[models.Manager[TallyTotal]] = models.Manager()

    class Meta:
        verbose_name = _("total of tallies")
        verbose_name_plural = _("totals of tallies")
        ordering = ["id"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"{visible_text(self.type, TYPE_CHARS)} {visible_text(self.target, TARGET_CHARS)}"
