"""Artefact: a file that one attempt of an execution made."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import ClassVar

from django.core.exceptions import ObjectDoesNotExist
from django.core.files.storage import Storage, default_storage, storages
from django.db import models
from django.db.models import F
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text

STORAGE = "artefacts"
"""The key in the setting STORAGES for the storage of artefacts. If the key is missing, the default storage is used."""


def artefact_storage() -> Storage:
    """The storage of artefacts: the project's `STORAGES["artefacts"]`, otherwise the project's default storage."""
    return storages[STORAGE] if STORAGE in storages.backends else default_storage


def artefact_path(artefact: Artefact, filename: str) -> str:
    """The path of a new file: `artefacts/<execution>/<attempt>-<random>/<filename>`.

    A project's web server may serve the media folder without checking permissions. So the path has a random part that
    cannot be guessed. A download through the admin checks a permission.
    """
    return f"artefacts/{artefact.execution_id}/{artefact.attempt}-{secrets.token_urlsafe(12)}/{filename}"


class Standing(models.TextChoices):
    """Whether an artefact is the result of its run. The labels answer this question."""

    RESULT = "result", _("yes")
    PENDING = "pending", _("not known yet, its attempt is still running")
    UNFINISHED = "unfinished", _("no, this attempt did not succeed")


class ArtefactQuerySet(models.QuerySet["Artefact"]):
    """Filters of artefacts."""

    def of(self, execution_ids: Iterable[int]) -> ArtefactQuerySet:
        """The artefacts of these executions, from all attempts."""
        return self.filter(execution__in=list(execution_ids))

    def per_execution(self) -> dict[int, int]:
        """How many of these artefacts each execution has."""
        return dict(self.order_by().values_list("execution").annotate(models.Count("pk")))

    def results(self) -> ArtefactQuerySet:
        """The artefacts made by attempts that succeeded."""
        return self.filter(execution__state=State.SUCCEEDED.value, attempt=F("execution__attempt"))


class Artefact(models.Model):
    """A file that a run wrote. The attempt's child saves the row, and then the file.

    A row alone does not mean that the file is a result, because the attempt can still be killed or lose its lease. Only
    the artefacts of the attempt that succeeded are results: see `is_result` and `results()`.
    """

    # The foreign key has no constraint in the database, because a constraint would have two disadvantages. First, each
    # insert would lock the execution's row, and the consumer updates this row at the same time. Second, retention could
    # not remove an execution while the file storage is unreachable. The walk over the artefacts in
    # `execution.retention.by_output` replaces the constraint.
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
    rows = models.PositiveBigIntegerField(_("rows"), null=True, blank=True)
    """The number of rows of a report; NULL for a file that a handler has attached."""
    checksum = models.CharField("SHA-256", max_length=64, blank=True, default="")  # in hexadecimal digits
    file = models.FileField(_("file"), storage=artefact_storage, upload_to=artefact_path, max_length=255)
    created_at = models.DateTimeField(_("created"), default=clock.now)

    objects: ClassVar[models.Manager[Artefact]] = ArtefactQuerySet.as_manager()

    class Meta:
        verbose_name = _("artefact")
        verbose_name_plural = _("artefacts")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "attempt", "filename"], name="scheduling_artefact_once")
        ]

    def __str__(self) -> str:
        return visible_text(self.filename)

    @property
    def standing(self) -> Standing:
        """Whether the file is a result. The execution's row decides."""
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
        """Whether the attempt that made the file succeeded."""
        return self.standing is Standing.RESULT
