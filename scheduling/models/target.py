"""Target: the abstract base of the models whose rows name a registered handler."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text
from scheduling.models.checked_params import CheckedParams


class Target(CheckedParams):
    """A row that names registered code and holds its default params. `migrate` and producers create missing rows."""

    name_field = "name"
    """The column that holds the name of the registered code."""

    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    description = models.TextField(_("description"), blank=True, default="")
    params = models.JSONField(
        _("parameters"),
        default=dict,
        blank=True,
        help_text=_("Defaults for every schedule of this target, as a JSON object."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return visible_text(self.title or self.handler_name)

    @property
    def handler_name(self) -> str:
        """The name of the registered handler."""
        name: str = getattr(self, self.name_field)
        return name
