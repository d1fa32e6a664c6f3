"""A form that shows parameters as one JSON object, with masked secrets.

A secret that the user leaves masked keeps its value.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from scheduling.admin.params.model import default_problems
from scheduling.handlers import Handler
from scheduling.handlers.secret_params import MASK, masked
from scheduling.operations.params_diff import unmask


class HiddenSecrets(forms.ModelForm):
    """The form of a target that names a handler and holds its default params.

    `former` holds the stored values. The audit entry compares the new values with the stored values.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former = dict(self.initial)
        if "params" in self.initial:
            self.initial["params"] = masked(self.code(), self.initial["params"])

    def code(self, data: dict[str, Any] | None = None) -> Handler | None:
        """The handler that the posted form or the row names; None if the handler is not registered in this process."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """Restores secrets that were left masked, and checks the parameters. Both steps need a registered handler."""
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
