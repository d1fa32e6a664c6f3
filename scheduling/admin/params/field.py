"""Defines ParamsField, which shows a ParamsForm as one field of a Django ModelForm."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.params.form import MEDIA, ParamsForm
from scheduling.admin.params.json_field import PrettyJSONField


class ParamsWidget(forms.Widget):
    """The widget of ParamsField. The ModelForm must set `form` before the widget is used."""

    form: ParamsForm

    @property
    def media(self) -> forms.Media:
        # The page's head loads the script, but the script needs elements of the body. With `defer`, the browser runs
        # the script after it has read the body.
        script: Any = forms.Script("scheduling/params.js", defer=True)
        return MEDIA + forms.Media(js=[script])

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return self.form.render()

    def value_from_datadict(self, data: Any, files: Any, name: str) -> ParamsForm:
        """Returns `form`, which has read the posted data already."""
        return self.form

    def id_for_label(self, id_: str) -> str:
        """The id of the JSON text area if the form has no inputs; otherwise empty."""
        return "id_params" if self.form.inputs is None else ""


class ParamsField(forms.Field):
    """A form field that shows a ParamsForm. The cleaned value is the dict of parameters."""

    widget = ParamsWidget

    def clean(self, value: Any) -> dict[str, Any]:
        """Returns the parameters, or raises a ValidationError. The ParamsForm itself shows the errors of its inputs."""
        form: ParamsForm = value
        if form.is_valid():
            return form.params
        if form.alone:
            raise ValidationError(form.sentences(), code="params")
        raise ValidationError(_("Please correct the parameters that are marked."), code="params")

    def has_changed(self, initial: Any, data: Any) -> bool:
        form: ParamsForm = data
        return not form.is_valid() or PrettyJSONField().has_changed(initial, form.params)
