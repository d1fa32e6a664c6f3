"""The columns with which a schedule overrides how long its executions are kept."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.retention import OWN, RetentionInvalid, RetentionPolicy

RETENTION_COLUMNS = {
    "keep_success_days": "success_days",
    "keep_failed_days": "failed_days",
    "keep_output_days": "output_days",
    "keep_count": "count",
}
"""Maps each column of a schedule's own retention to the attribute of `RetentionPolicy` that the column overrides."""

OUT_OF_BOUNDS = _("It must be a whole number from %(low)s to %(high)s.")

_DAYS: dict[str, Any] = {"null": True, "blank": True}


class OwnRetention(models.Model):
    """A row with its own values of a retention policy. An empty column means the value of the settings."""

    keep_success_days = models.PositiveSmallIntegerField(
        _("days to keep successes"),
        help_text=_("Successful runs are removed so many days after their end. Empty: as the settings say."),
        **_DAYS,
    )
    keep_failed_days = models.PositiveSmallIntegerField(
        _("days to keep failures"),
        help_text=_("Failures leave the inbox after so many days. Empty: as the settings say."),
        **_DAYS,
    )
    keep_output_days = models.PositiveSmallIntegerField(
        _("days to keep output"),
        help_text=_("Output and files are removed so many days after the run. Empty: as the settings say."),
        **_DAYS,
    )
    keep_count = models.PositiveSmallIntegerField(
        _("runs to keep"),
        help_text=_("Only so many of the newest runs are kept. Failures are kept, too. Empty: as the settings say."),
        **_DAYS,
    )

    class Meta:
        abstract = True

    def retention_policy(self, base: RetentionPolicy) -> RetentionPolicy:
        """The schedule's policy: the schedule's own values, and the values of `base` for the rest.

        Args:
            base: the policy of the settings.

        Raises:
            RetentionInvalid: a value is out of bounds; the error names the attribute.
        """
        return base.with_own({attribute: getattr(self, column) for column, attribute in RETENTION_COLUMNS.items()})

    def retention_errors(self) -> dict[str, ValidationError]:
        """Maps the name of each column with an invalid value to the error; empty if all values are valid."""
        problems = {}
        for column, attribute in RETENTION_COLUMNS.items():
            try:
                RetentionPolicy().with_own({attribute: getattr(self, column)})
            except RetentionInvalid:
                bounds = {"low": OWN[0], "high": OWN[1]}
                problems[column] = ValidationError(OUT_OF_BOUNDS, code="retention", params=bounds)
        return problems
