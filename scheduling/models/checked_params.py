"""CheckedParams: the abstract base of targets, whose params every database must be able to store."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from scheduling.core import json_bounds


class CheckedParams(models.Model):
    """A row with a column `params`. `save` refuses params that a database would refuse."""

    class Meta:
        abstract = True

    def clean(self) -> None:
        params = getattr(self, "params")  # noqa: B009 - the models have the column
        if problem := json_bounds.problem(_("The JSON"), params):
            raise ValidationError({"params": ValidationError(problem, code="params")})

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row.

        Raises:
            django.core.exceptions.ValidationError: a database would refuse the params.
        """
        CheckedParams.clean(self)
        super().save(*args, **kwargs)
