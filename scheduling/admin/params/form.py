"""A form for parameters. It has one input for each field of the params model, and one box for all parameters.

The box is a text area with all parameters as one JSON object. Any page may show such a form:

```python
form = ParamsForm(handler, stored, inherited=target.params, data=request.POST or None)
if form.is_valid():
    form.params        # secrets that were left masked have their stored values
form.render()          # in a template: {{ form }}. The page must load MEDIA of this module.
```

If the user edited only the box, `params` has the parameters of the box. If the user edited both the inputs and the
box, the form is refused with an error at the box. Otherwise `params` has the values of the inputs. An empty box counts
as not edited. If the form has no inputs, users write all parameters in the box.

Posted names: `params` is the text of the box, `params.was` is the text that the box was rendered with,
`params.field.<name>` is an input, and `params.for` names the handler for which the inputs were made. A client may post
`params` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django import forms
from django.forms import BoundField
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from scheduling.admin.params.input import Slot
from scheduling.admin.params.inputs import NAME, Inputs, Posted
from scheduling.admin.params.json_field import PrettyJSONField, PrettyJSONWidget
from scheduling.admin.params.schema import slots
from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.params import ParamsInvalid, merge, validate
from scheduling.handlers.secret_params import masked, secret_names
from scheduling.handlers.targets import handler_named
from scheduling.operations.params_diff import hidden_words, masked_names, unmask

TEMPLATE = "admin/scheduling/params_form.html"
MEDIA = forms.Media(css={"all": ["scheduling/admin.css", "scheduling/params.css"]})
NOTHING: Mapping[str, Any] = MappingProxyType({})


class ParamsForm:
    """The inputs and the box for the parameters of one handler.

    Args:
        handler: the handler that will get the parameters; None if that handler is not registered in this process.
        stored: the stored parameters. Their secrets are not masked.
        inherited: the target's own parameters.
        stored_for: the handler for which `stored` was written; None means `handler`.
        data: the posted form, or None.
        url: the URL from which a script gets the form for another target; empty if the target is fixed.
    """

    told_elsewhere = False
    """Whether the page itself shows the errors of a box that was posted without inputs."""

    def __init__(
        self,
        handler: Handler | None,
        stored: Any,
        *,
        inherited: Any = NOTHING,
        stored_for: Handler | None = None,
        data: QueryDict | Mapping[str, Any] | None = None,
        url: str = "",
    ) -> None:
        self.handler, self.stored, self.inherited, self.url = handler, stored, inherited, url
        self.stored_for = stored_for or handler
        self.bound, self._checked = data is not None, False
        self.errors: dict[str, str] = {}
        """Maps the name of a wrong parameter to a sentence. The name '' is for all parameters together."""
        self.params: dict[str, Any] = {}
        self.written: dict[str, Any] | None = None
        """The posted parameters; None if they cannot be read. Secrets that the user did not edit are still masked."""
        self.alone = self.by_box = self.edited = self.unfit = False
        """`alone`: the box was posted without inputs. `by_box`: the parameters were read from the box.

        `edited`: the text of the box was edited. `unfit`: an input cannot show its value.
        """
        self.inputs: Inputs | None = None
        own = masked(handler, inherited) if isinstance(inherited, dict) else {}
        self._slots = slots(handler, own) if handler is not None else None
        was = masked(self.stored_for, stored)
        if data is None:
            self._draw(was)
        else:
            self._read(data, was)

    def _draw(self, values: Any) -> None:
        """Makes the text of the box. Makes the inputs, too, if each input can show its value."""
        self.text = self.base = PrettyJSONField().prepare_value(values)
        if self._slots is not None and isinstance(values, dict):
            inputs = Inputs(self._slots, values)
            self.unfit = not inputs.fit
            self.inputs = inputs if inputs.fit else None

    def _read(self, data: Any, was: Any) -> None:
        """Reads the posted form, and prepares it to be shown again.

        Inputs that were posted for another handler are replaced by inputs for this handler.
        """
        type_, _slash, name = data.get(f"{NAME}.for", "").partition("/")
        writer = handler_named(type_, name)
        mine = writer is not None and writer is self.handler
        found = self._slots if mine else slots(writer) if writer is not None else None
        posted = Posted(data, found, {slot.name for slot in self._slots or ()})
        self.errors, self.written = posted.errors, posted.written
        self.alone, self.by_box, self.edited = posted.inputs is None, posted.by_box, posted.edited
        self._draw(was if posted.shown is None else posted.shown)
        if posted.shown is None:
            self.base, self.inputs = posted.base, posted.inputs if mine else self.inputs
        if self.written is None:
            self.text = posted.text

    @property
    def open(self) -> bool:
        """Whether the page shows the box unfolded.

        The box is folded only if the form has inputs, the inputs show all values, and the box was not edited.
        """
        return self.inputs is None or self.by_box or self.edited or bool(self.inputs.others)

    def is_valid(self) -> bool:
        """Whether the posted parameters can be read and fit the handler's params model. Fills `params` and `errors`."""
        if self.written is not None and not self._checked:
            self._checked = True
            self._check(self.written)
        return self.written is not None and not self.errors

    def _check(self, written: dict[str, Any]) -> None:
        self.params = self._unmasked(written)
        self.errors = dict.fromkeys(masked_names(self.params), hidden_words())
        if not isinstance(self.inherited, Mapping):
            # The admin stores only JSON objects, but plain SQL can store any other value.
            self.errors[""] = _("The target's own parameters are not a JSON object. Fix them first.")
        if self.handler is None or self.errors:
            return
        try:
            kept = self._kept()
            changed = {name: value for name, value in self.params.items() if name not in kept}
            validate(self.handler, changed, merge(self.inherited, kept))
        except ParamsInvalid as error:
            for path, text in error.errors.items():
                name, _dot, rest = path.partition(".")
                sentence = visible_text(f"{rest}: {text}" if rest else text, 500)
                self.errors[name] = f"{self.errors[name]} {sentence}" if name in self.errors else sentence

    def _kept(self) -> dict[str, Any]:
        """The params whose names are stored already. If the code no longer knows one, it may stay."""
        if self.handler is not self.stored_for or not isinstance(self.stored, dict):
            return {}
        return {name: value for name, value in self.params.items() if name in self.stored}

    def _unmasked(self, written: dict[str, Any]) -> dict[str, Any]:
        # Stored secrets are filled in only for their own handler, because another handler might reveal the secrets.
        if self.handler is not self.stored_for or not isinstance(self.stored, dict):
            return dict(written)
        return unmask(self.handler, self.stored, written)

    def sentences(self) -> list[str]:
        """The errors as lines of text, for a page that shows all errors in one place."""
        return _lines(self.errors)

    def render(self) -> SafeString:
        """The inputs as HTML, with the box below them."""
        rows = self._rows()
        at_inputs = {slot.name for slot, _field, error in rows if error}
        rest = _lines({name: text for name, text in self.errors.items() if name not in at_inputs})
        told = self.told_elsewhere and self.alone
        context = {
            "form": self,
            "rows": rows,
            "box": self._box(),
            "box_errors": rest if self.by_box and not told else [],
            "general": rest if not self.by_box else [],
            "writer": f"{self.handler.type}/{self.handler.name}" if self.handler is not None else "",
            "secret": bool(secret_names(self.handler)),
        }
        return mark_safe(render_to_string(TEMPLATE, context))  # noqa: S308 - escaped by the template

    __str__ = __html__ = render

    def _box(self) -> SafeString:
        attrs = {"id": "id_params", "aria-label": _("Parameters as JSON"), "aria-describedby": "id_params_helptext"}
        if self.by_box and self.errors:
            attrs |= {"aria-invalid": "true", "aria-describedby": "id_params_error id_params_helptext"}
        return PrettyJSONWidget().render(NAME, self.text, attrs)

    def _rows(self) -> list[tuple[Slot, BoundField, str]]:
        """The description, form field and error of each input. Errors of the box are left out."""
        if self.inputs is None:
            return []
        errors = {} if self.by_box else self.errors
        rows = [(slot, self.inputs[slot.name], errors.get(slot.name, "")) for slot in self.inputs.slots]
        for _slot, field, error in rows:
            if error:
                own = f"{field.id_for_label}_error {field.id_for_label}_helptext"
                field.field.widget.attrs |= {"aria-invalid": "true", "aria-describedby": own}
        return rows


def _lines(errors: Mapping[str, str]) -> list[str]:
    return [visible_text(f"{name}: {text}" if name else text, 600) for name, text in errors.items()]
