"""The columns with which a schedule overrides the retry policy of its handler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid

RETRY_COLUMNS = {
    "max_retries": "max_retries",
    "retry_delay_ms": "delay_ms",
    "retry_multiplier": "multiplier",
    "retry_max_delay_ms": "max_delay_ms",
    "retry_jitter": "jitter",
}
"""Maps each column of a schedule's own retry policy to the attribute of `RetryPolicy` that the column overrides."""


class OwnRetryPolicy(models.Model):
    """A row with its own values of a retry policy. An empty column means the value of the handler or the settings."""

    max_retries = models.PositiveSmallIntegerField(
        _("retries"), null=True, blank=True, help_text=_("Empty: as the handler or the settings say.")
    )
    retry_delay_ms = models.PositiveIntegerField(_("first retry delay (ms)"), null=True, blank=True)
    retry_multiplier = models.FloatField(_("delay multiplier"), null=True, blank=True)
    retry_max_delay_ms = models.PositiveIntegerField(_("longest delay (ms)"), null=True, blank=True)
    retry_jitter = models.BooleanField(_("jitter"), null=True, blank=True)

    class Meta:
        abstract = True

    def retry_policy(self, base: RetryPolicy) -> RetryPolicy:
        """The schedule's retry policy: the schedule's own values, and the values of `base` for the rest.

        Args:
            base: the handler's policy or the settings' policy.

        Raises:
            RetryPolicyInvalid: a value is out of bounds; the error names the field.
        """
        own: dict[str, Any] = {attribute: getattr(self, column) for column, attribute in RETRY_COLUMNS.items()}
        given = {attribute: value for attribute, value in own.items() if value is not None}
        if isinstance(given.get("delay_ms"), int) and "max_delay_ms" not in given:
            # If the schedule's first delay is above the inherited maximum, the maximum is raised to that delay.
            given["max_delay_ms"] = max(base.max_delay_ms, given["delay_ms"])
        if "multiplier" in given or ("delay_ms" in given and not isinstance(base.backoff, str)):
            given["backoff"] = "exponential"  # the schedule's own delays replace the list or function of the handler
        return replace(base, **given) if given else base

    def retry_errors(self, base: RetryPolicy) -> dict[str, ValidationError]:
        """The error of the retry policy, under the name of the invalid column; empty if the policy is valid.

        Args:
            base: see `retry_policy`.
        """
        try:
            self.retry_policy(base)
        except RetryPolicyInvalid as error:
            column = next(name for name, attribute in RETRY_COLUMNS.items() if attribute == error.field)
            return {column: ValidationError(str(error), code=error.code)}
        return {}
