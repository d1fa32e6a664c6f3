"""Review: a model without a table. It gives the page "Review" a place in the admin and a permission."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.models.dashboard import NoRows


class Review(models.Model):
    """Gives the page its entry in the sidebar and the permission `view_review`."""

    objects: ClassVar[NoRows] = NoRows()

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = _("review")
        verbose_name_plural = _("review")

    def __str__(self) -> str:
        return "review"
