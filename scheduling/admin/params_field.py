"""A ParamsForm as a field of a model form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.json_field import PrettyJSONField
from scheduling.admin.params_form import JSON, ParamsForm


class ParamsWidget(forms.Widget):
    """Stands where a model form has its `params`; the ParamsForm is set by the form that owns it."""

    form: ParamsForm

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """The ParamsForm's own rendering."""
        return self.form.render()

    def value_from_datadict(self, data: Any, files: Any, name: str) -> ParamsForm:
        """The ParamsForm has read it already."""
        return self.form

    def id_for_label(self, id_: str) -> str:
        """The label belongs to the JSON only where that is what is shown."""
        return "id_params" if self.form.as_ == JSON else ""


class ParamsField(forms.Field):
    """A ParamsForm as a field of a model form."""

    widget = ParamsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)

    def clean(self, value: Any) -> dict[str, Any]:
        """The parameters; an error in one of several inputs is told at that input."""
        form: ParamsForm = value
        if form.is_valid():
            return form.params
        if form.as_ == JSON:
            raise ValidationError(form.sentences() or [_("Parameters are a JSON object.")], code="params")
        raise ValidationError(_("Please correct the parameters that are marked."), code="params")

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare values, not their spelling."""
        form: ParamsForm = data
        return not form.is_valid() or PrettyJSONField().has_changed(initial, form.params)
