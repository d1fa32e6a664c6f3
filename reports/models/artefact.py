"""ReportArtefact: a file that one attempt of an execution made."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import ClassVar

from django.core.exceptions import ObjectDoesNotExist
from django.core.files.storage import Storage, default_storage, storages
from django.db import models
from django.db.models import Exists, F, OuterRef
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.core.lifecycle import State
from scheduling.core.text import shown
from scheduling.models import SchedulerExecution

STORAGE = "reports"
"""The entry of STORAGES that keeps the files; without it, the default storage does."""


def artefact_storage() -> Storage:
    """Where the files are kept: the project's `STORAGES["reports"]`, else its default storage."""
    return storages[STORAGE] if STORAGE in storages.backends else default_storage


def artefact_path(artefact: ReportArtefact, filename: str) -> str:
    """`reports/<execution>/<attempt>-<random>/<filename>`.

    The random part keeps a report from being guessed where a project's web server hands out its
    media folder: the way to a file is the admin's download, which asks for a permission.
    """
    return f"reports/{artefact.execution_id}/{artefact.attempt}-{secrets.token_urlsafe(12)}/{filename}"


class Standing(models.TextChoices):
    """What an artefact is worth."""

    RESULT = "result", _("result")
    PENDING = "pending", _("from an attempt that is not over")
    UNFINISHED = "unfinished", _("from an attempt that did not finish")


class ArtefactQuerySet(models.QuerySet["ReportArtefact"]):
    """Verbs of the glossary."""

    def of(self, execution_ids: Iterable[int]) -> ArtefactQuerySet:
        """The artefacts of these executions, whatever came of the attempts."""
        return self.filter(execution__in=list(execution_ids))

    def results(self) -> ArtefactQuerySet:
        """Those that count: made by the attempt that succeeded."""
        return self.filter(execution__state=State.SUCCEEDED.value, attempt=F("execution__attempt"))

    def leftovers(self, before: int) -> ArtefactQuerySet:
        """Those with an execution key below `before` whose execution is gone: a removal that was cut short."""
        there = SchedulerExecution.objects.filter(pk=OuterRef("execution_id"))
        return self.filter(~Exists(there), execution__lt=before)


class ReportArtefact(models.Model):
    """What a report wrote. Written by the attempt's own process, and never changed afterwards.

    An attempt can be killed, or fenced off, after it has written; so a row here is no result by
    itself. `is_result` and `results()` say which one is: that of the attempt that succeeded.
    """

    # No constraint in the database: there, each insert would lock the execution's row, which its
    # supervisor renews and settles meanwhile; and a file storage that is down would keep
    # retention from removing executions. `executions_pruned` and `leftovers` do that work.
    execution = models.ForeignKey(
        "scheduling.SchedulerExecution",
        on_delete=models.CASCADE,
        related_name="artefacts",
        db_constraint=False,
        db_index=False,
        verbose_name=_("execution"),
    )
    attempt = models.PositiveIntegerField(_("attempt"))
    filename = models.CharField(_("file name"), max_length=150)
    content_type = models.CharField(_("content type"), max_length=100)
    size = models.PositiveBigIntegerField(_("size in bytes"), default=0)
    rows = models.PositiveBigIntegerField(_("rows"), default=0)
    file = models.FileField(_("file"), storage=artefact_storage, upload_to=artefact_path, max_length=255)
    created_at = models.DateTimeField(_("created"), default=clock.now)

    objects: ClassVar[models.Manager[ReportArtefact]] = ArtefactQuerySet.as_manager()

    class Meta:
        verbose_name = _("report artefact")
        verbose_name_plural = _("report artefacts")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "attempt", "filename"], name="reports_artefact_once")
        ]

    def __str__(self) -> str:
        return shown(self.filename)

    @property
    def standing(self) -> Standing:
        """What the file is worth: decided by the execution's row, which only the settle changes."""
        try:
            execution = self.execution
        except ObjectDoesNotExist:
            return Standing.UNFINISHED
        if execution.attempt != self.attempt:
            return Standing.UNFINISHED
        states = {State.SUCCEEDED.value: Standing.RESULT, State.RUNNING.value: Standing.PENDING}
        return states.get(execution.state, Standing.UNFINISHED)

    @property
    def is_result(self) -> bool:
        """Whether it was made by the attempt that succeeded."""
        return self.standing is Standing.RESULT
