"""Alert: a situation that a rule has found, from its beginning to its end."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduling.core.alert_rules import Severity
from scheduling.core.alerts import ADVICE_CHARS, SEEN_CHARS, SUBJECT_CHARS
from scheduling.core.text import visible_text
from scheduling.models.alert_rule import REASON_LENGTH, AlertRule
from scheduling.models.used_group import group_column

URGENCY = models.Case(
    *(models.When(severity=severity.value, then=models.Value(severity.rank)) for severity in Severity),
    default=models.Value(Severity.CRITICAL.rank),
    output_field=models.IntegerField(),
)
"""The rank of an alert's severity, for an order. One that does not exist is the highest, as in `core.alerts`."""


class Alert(models.Model):
    """One alert. A subject of a rule has at most one open alert, because `open_key` is unique.

    `cleanup_executions` removes alerts that ended long ago.
    """

    rule = models.ForeignKey(
        AlertRule, models.SET_NULL, null=True, blank=True, related_name="alerts", verbose_name=_("rule")
    )
    """NULL if the rule was deleted."""
    rule_name = models.CharField(_("rule"), max_length=100)
    kind = models.CharField(_("about"), max_length=20, choices=AlertRule.Kinds)
    severity = models.CharField(_("severity"), max_length=10, choices=AlertRule.Severities)
    key = models.CharField(max_length=200, editable=False)
    """Identifies the subject within the rule."""
    open_key = models.CharField(max_length=64, null=True, unique=True, editable=False)
    """`core.alerts.open_key` while the alert is open; NULL afterwards."""
    subject = models.CharField(_("subject"), max_length=SUBJECT_CHARS)
    seen = models.CharField(_("what was seen"), max_length=SEEN_CHARS)
    advice = models.CharField(_("advice"), max_length=ADVICE_CHARS, blank=True, default="")
    schedule = models.ForeignKey(
        "scheduling.Scheduler", models.SET_NULL, null=True, blank=True, related_name="alerts",
        verbose_name=_("schedule"),
    )  # fmt: skip
    execution = models.PositiveBigIntegerField(_("execution"), null=True, blank=True)
    """The id of the execution that it is about. Retention may have removed this execution."""
    group = group_column()
    """The group whose members see the alert; NULL if it belongs to no group."""
    started_at = models.DateTimeField(_("since"))
    seen_at = models.DateTimeField(_("last seen"))
    gone_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Since when the situation is gone, while the alert is still open."""
    ended_at = models.DateTimeField(_("until"), null=True, blank=True, db_index=True)
    told_at = models.DateTimeField(_("told"), null=True, blank=True)
    """When its start was handed to channels; NULL if no channel was told, for example because it was muted.

    It becomes NULL again when the group or the severity of the alert changes: other channels may be told then."""
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True, blank=True)
    acknowledged_by = models.CharField(_("acknowledged by"), max_length=150, blank=True, default="")
    muted_until = models.DateTimeField(_("muted until"), null=True, blank=True)
    muted_by = models.CharField(_("muted by"), max_length=150, blank=True, default="")
    mute_reason = models.CharField(_("reason"), max_length=REASON_LENGTH, blank=True, default="")

    objects: ClassVar[models.Manager[Alert]] = models.Manager()

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [("acknowledge_alert", gettext_noop("Can acknowledge and mute alerts"))]

    def __str__(self) -> str:
        return visible_text(f"{self.rule_name}: {self.subject}")

    @property
    def is_open(self) -> bool:
        """Whether the situation lasts."""
        return self.ended_at is None
