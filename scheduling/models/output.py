"""Output: what a run printed, in chunks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

CUT = "left out here"
"""Each NOTE line (see `Output`) that stands for missing output contains this text. Pages highlight these lines."""

CHUNK_LIMIT = 250_000
"""The maximum number of characters in one row. A character takes up to four bytes, so a row takes up to 1 MB. The
smallest default packet limit of MySQL and MariaDB is four times as large."""


class Output(models.Model):
    """A chunk of an attempt's output: whole lines, in the order in which they were read.

    Each line is `<ISO time> <LEVEL> <text>`. LEVEL is the log level, OUT for text that was printed, or NOTE for a line
    that the consumer itself added.
    """

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="outputs", db_index=False
    )
    attempt = models.PositiveIntegerField(_("attempt"))
    sequence = models.PositiveIntegerField(_("sequence"))
    text = models.TextField(_("text"))
    created_at = models.DateTimeField(_("stored"))

    class Meta:
        verbose_name = _("output")
        verbose_name_plural = _("output")
        ordering = ["execution", "attempt", "sequence"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "attempt", "sequence"], name="scheduling_output_once")
        ]

    def __str__(self) -> str:
        return f"{self.execution_id}.{self.attempt} #{self.sequence}"
