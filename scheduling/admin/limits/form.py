"""The form of a lowered limit: of which handler, to what, and why."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.confirm import reason_field
from scheduling.handlers import handlers
from scheduling.handlers.permission import lacks
from scheduling.models import LoweredLimit
from scheduling.models.limit import LONGEST_REASON

HANDLER = "handler"
"""The name of the field that stands for the columns type and name."""


class LoweredLimitForm(forms.ModelForm):
    """Asks for the handler if the row is new. Of a stored one, the numbers and the reason can be changed."""

    handler = forms.ChoiceField(label=_("Handler"))
    user: Any = None
    """Who fills it in. The page sets it."""
    reason = reason_field(
        LONGEST_REASON, _("Why the limit is lowered. When you delete this row, the limit of the code holds again.")
    )

    class Meta:
        model = LoweredLimit
        fields = ("at_once", "starts", "reason")
        labels: ClassVar[dict[str, Any]] = {"starts": _("Starts within the time span of the code")}
        help_texts: ClassVar[dict[str, Any]] = {
            "at_once": _("Empty: the number of the code."),
            "starts": _("Empty: the number of the code."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if HANDLER in self.fields:
            limited = [each for each in handlers() if each.limit is not None and not lacks(self.user, each)]
            names = sorted((f"{each.type}:{each.name}", f"{each.type} {each.name}") for each in limited)
            self.fields[HANDLER].choices = [("", "---------"), *names]  # type: ignore[attr-defined]

    def clean_reason(self) -> str:
        """The reason as one line, because pages show it inside a sentence."""
        return " ".join(str(self.cleaned_data["reason"]).split())[:LONGEST_REASON]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if what := cleaned.get(HANDLER):
            self.instance.type, _colon, self.instance.name = what.partition(":")
            if LoweredLimit.objects.filter(type=self.instance.type, name=self.instance.name).exists():
                raise ValidationError(_t("Its limit is lowered already. Change that row."), code="lowered")
        if not self.errors and cleaned.get("at_once") is None and cleaned.get("starts") is None:
            raise ValidationError(_t("Give a number of runs at once, or of starts."), code="empty")
        return cleaned
