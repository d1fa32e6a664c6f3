"""A form of parameters as one JSON object, whose secrets nobody is shown: those left as they stand are kept."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from scheduling.admin.params_diff import unmask
from scheduling.admin.params_model import MASK, default_problems, masked
from scheduling.registry import Handler


class HiddenSecrets(forms.ModelForm):
    """A row that names code, with defaults for it. `former` holds the values that were stored, for the trail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former = dict(self.initial)
        if "params" in self.initial:
            self.initial["params"] = masked(self.code(), self.initial["params"])

    def code(self, data: dict[str, Any] | None = None) -> Handler | None:
        """The code that the row names, or that a posted form names; None when it is not registered here."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """With the secrets that were left alone, and fit for the code, if it is registered here."""
        data = super().clean() or self.cleaned_data
        handler, params = self.code(data), data.get("params")
        if handler is None or not isinstance(params, dict):
            return data
        if handler is self.code() and isinstance(self.instance.params, dict):
            params = data["params"] = unmask(handler, self.instance.params, params)
        for name in (name for name, value in params.items() if value == MASK):
            text = _("%(name)s was hidden, and is not known for this code: write it again.") % {"name": name}
            self.add_error("params", ValidationError(text, code="params"))
        for text in default_problems(handler, params):
            self.add_error("params", ValidationError(text, code="params"))
        return data
