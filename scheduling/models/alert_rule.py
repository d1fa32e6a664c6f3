"""AlertRule: whether, whom and from what threshold on to tell of a situation."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.alert_rules import RuleKind, Severity
from scheduling.core.text import visible_text
from scheduling.models.used_group import group_column

REASON_LENGTH = 200
ERROR_LENGTH = 500


class AlertRule(models.Model):
    """One rule. The findings of the doctor and of the dashboard do not depend on it.

    It tells its channels. If it has none, it tells the channels that are told by default.
    """

    class Kinds(models.TextChoices):
        INBOX = RuleKind.INBOX.value, _("failures in the inbox")
        RETRIED = RuleKind.RETRIED.value, _("a run is retried often")
        RETRY_SHARE = RuleKind.RETRY_SHARE.value, _("many runs are retried")
        NOT_STARTED = RuleKind.NOT_STARTED.value, _("a schedule has not started in time")
        NOT_FINISHED = RuleKind.NOT_FINISHED.value, _("a schedule will not be finished in time")
        FAILED_IN_A_ROW = RuleKind.FAILED_IN_A_ROW.value, _("a schedule fails repeatedly")
        SLOW = RuleKind.SLOW.value, _("a run is slower than usual")
        SKIPPED = RuleKind.SKIPPED.value, _("an occurrence was skipped")
        PAUSED_BY_FAILURES = RuleKind.PAUSED_BY_FAILURES.value, _("failures have paused a schedule")
        GROUP_BACK = RuleKind.GROUP_BACK.value, _("a resolved error is back")
        BREAKER = RuleKind.BREAKER.value, _("a circuit breaker has opened")
        NO_PRODUCER = RuleKind.NO_PRODUCER.value, _("no producer is alive")
        NO_CONSUMER = RuleKind.NO_CONSUMER.value, _("no consumer serves a queue")
        BROKER_AWAY = RuleKind.BROKER_AWAY.value, _("the broker cannot be reached")
        DATABASE_AWAY = RuleKind.DATABASE_AWAY.value, _("the database cannot be reached")
        DISK = RuleKind.DISK.value, _("a disk is nearly full")
        CLOCK = RuleKind.CLOCK.value, _("a clock is wrong")
        HOLD = RuleKind.HOLD.value, _("the processes hold")

    class Severities(models.TextChoices):
        INFO = Severity.INFO.value, _("info")
        WARNING = Severity.WARNING.value, _("warning")
        CRITICAL = Severity.CRITICAL.value, _("critical")

    name = models.CharField(_("name"), max_length=100, unique=True)
    kind = models.CharField(_("about"), max_length=20, choices=Kinds)
    enabled = models.BooleanField(_("on"), default=True)
    severity = models.CharField(_("severity"), max_length=10, choices=Severities, default=Severity.WARNING.value)
    number = models.FloatField(_("threshold"), null=True, blank=True)
    """A count, a percentage or a factor (`core.alert_rules.KINDS`); NULL for the default of the kind."""
    seconds = models.FloatField(_("time"), null=True, blank=True)
    """A span; NULL for the default of the kind."""
    at = models.CharField(_("time of the day"), max_length=5, blank=True, default="")
    """Such as `06:30`, in the zone of the schedule."""
    schedule = models.ForeignKey(
        "scheduling.Scheduler", models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("schedule")
    )
    """The only schedule that the rule is about; NULL for all."""
    group = group_column()
    """Only the schedules of this group count; NULL for all."""
    channels = models.ManyToManyField(
        "scheduling.Channel", blank=True, related_name="alert_rules", verbose_name=_("channels")
    )
    muted_until = models.DateTimeField(_("muted until"), null=True, blank=True)
    muted_by = models.CharField(_("muted by"), max_length=150, blank=True, default="")
    mute_reason = models.CharField(_("reason"), max_length=REASON_LENGTH, blank=True, default="")
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True, default="", editable=False)
    """Why the rule could not be evaluated the last time; empty if it could."""
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects: ClassVar[models.Manager[AlertRule]] = models.Manager()

    class Meta:
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        ordering = ["name"]

    def __str__(self) -> str:
        return visible_text(self.name)
