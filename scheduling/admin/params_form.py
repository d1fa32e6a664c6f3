"""Parameters in a form: an input for each field of the params model, or one JSON object; the operator's choice.

Any page may hold one:

```python
form = ParamsForm(handler, stored, inherited=target.params, data=request.POST or None)
if form.is_valid():
    form.params        # with the secrets that were left as they were shown
form.render()          # in the template: {{ form }}; needs MEDIA of this module
```

`params.as` says which of the two counts, `params.for` for whose code the inputs were made; `params` alone is the JSON
object, so that a page without a script, and a client that knows nothing of inputs, post what they always did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from scheduling.admin.params_diff import unmask
from scheduling.admin.params_inputs import NAME, Inputs, Text
from scheduling.admin.params_model import MASK, masked, secret_names
from scheduling.admin.params_schema import slots
from scheduling.admin.text import shown
from scheduling.params import ParamsInvalid, merge, validate
from scheduling.registry import Handler, UnknownHandler, find

TEMPLATE = "admin/scheduling/params_form.html"
FIELDS, JSON = "fields", "json"

# Deferred: it stands in the head, and looks for what stands in the body.
MEDIA = forms.Media(
    css={"all": ["scheduling/admin.css", "scheduling/params.css"]},
    js=[forms.Script("scheduling/params.js", defer=True)],  # type: ignore[list-item]  # the stubs know only paths
)


class ParamsForm:
    """See the module.

    Args:
        handler: the code that will take them; None when it is not registered here.
        stored: what is stored, with its secrets.
        inherited: the target's own parameters.
        stored_for: the code that `stored` was written for, where that is another one.
        data: what was posted, or None.
        values: shown in place of what is stored; secrets in it are hidden already.
        as_: how to show them; by itself as inputs, where they fit.
        url: where a script asks for the form anew, when the way of writing or the target changes; the page's own
            address will do, for a view that answers `wanted`.
    """

    told_elsewhere = False
    """The page itself shows what is wrong with the JSON."""

    def __init__(
        self,
        handler: Handler | None,
        stored: Any,
        *,
        inherited: Any = None,
        stored_for: Handler | None = None,
        data: QueryDict | Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
        as_: str = "",
        url: str = "",
    ) -> None:
        self.handler, self.url = handler, url
        self.stored: Any = stored
        self.stored_for = stored_for or handler
        self.inherited = inherited if isinstance(inherited, dict) else {}
        self.errors: dict[str, str] = {}
        """Sentences by parameter; '' for the whole."""
        self.params: dict[str, Any] = {}
        self.written: dict[str, Any] | None = None
        """What was read, with its secrets hidden as they were shown; None when it could not be read."""
        self._found = slots(handler, masked(handler, self.inherited)) if handler is not None else None
        was = masked(self.stored_for, stored)
        shows: Any = was if values is None else values
        self.bound = data is not None
        self.inputs: Inputs | None = None
        self.text = Text(initial={NAME: shows})
        if data is not None:
            shows = self._read(data, was)
        if self._found is not None and isinstance(shows, dict) and (self.inputs is None or self.written is not None):
            self.inputs = self.inputs or Inputs(self._found, shows)
        fit = self.inputs is not None and self.inputs.fit
        if not fit and self.as_posted != FIELDS:
            self.inputs = None
        self.unfit = self._found is not None and not fit and isinstance(shows, dict)
        self.as_ = self.as_posted or (as_ if as_ in {FIELDS, JSON} else FIELDS)
        if self.inputs is None:
            self.as_ = JSON

    as_posted = ""

    def _read(self, data: Any, was: Any) -> Any:
        """Read what was posted, in the way that it was written; returns what to show."""
        writer = _named(data.get(f"{NAME}.for", ""))
        found = slots(writer) if writer is not None and data.get(f"{NAME}.as") == FIELDS else None
        form: Inputs | Text
        if found is not None:
            form = Inputs(found, was if isinstance(was, dict) else {}, data)
            self.as_posted = FIELDS
            if writer is self.handler:
                self.inputs = Inputs(self._found or [], form.values, data)
                form = self.inputs
        else:
            form = self.text = Text(data)
            self.as_posted = JSON
        if not form.is_valid():
            self.errors = {
                "" if name == NAME else name: " ".join(map(str, texts)) for name, texts in form.errors.items()
            }
            if form is not self.inputs and isinstance(form, Inputs):
                # The inputs of other code: what they held cannot be shown by those of the present one.
                self.as_posted = ""
            return was
        self.written = form.read() if isinstance(form, Inputs) else form.cleaned_data[NAME]
        if isinstance(form, Inputs):
            if form is not self.inputs:
                known = {slot.name for slot in form.slots}
                mine = {slot.name for slot in self._found or ()}
                # What the new code has by the same name is kept; what only the former one knew is not its matter.
                self.written = {n: v for n, v in self.written.items() if n in mine or n not in known}
            self.text = Text(initial={NAME: self.written})
        return self.written

    def is_valid(self) -> bool:
        """Whether it was posted, could be read, and fits the code; `params` and `errors` say the rest."""
        if not self.bound or self.written is None or self.errors:
            return False
        self.params = self._unmasked(self.written)
        hidden = [name for name, value in self.params.items() if value == MASK]
        for name in hidden:
            self.errors[name] = _("It was hidden, and is not known for this code: write it again.")
        if self.handler is None or hidden:
            return not hidden
        try:
            validate(self.handler, merge(self.inherited, self.params))
        except ParamsInvalid as error:
            for path, text in error.errors.items():
                name, _dot, rest = path.partition(".")
                self._tell(name, f"{rest}: {text}" if rest else text)
        return not self.errors

    def _tell(self, name: str, text: str) -> None:
        self.errors[name] = f"{self.errors[name]} {text}" if name in self.errors else shown(text, 500)

    def _unmasked(self, written: dict[str, Any]) -> dict[str, Any]:
        # Only for the code that they were hidden for: another one might show them.
        if self.handler is not self.stored_for or not isinstance(self.stored, dict):
            return dict(written)
        return unmask(self.handler, self.stored, written)

    def sentences(self) -> list[str]:
        """The errors as lines, for a page that shows them in one place."""
        return _lines(self.errors)

    def switched(self, wanted: str) -> ParamsForm:
        """The same, written in the other way; as it is, where what was written cannot be read."""
        if self.written is None:
            return self
        return ParamsForm(
            self.handler,
            self.stored,
            inherited=self.inherited,
            stored_for=self.stored_for,
            values=self.written,
            as_=wanted,
            url=self.url,
        )

    @staticmethod
    def wanted(data: Mapping[str, Any]) -> str | None:
        """The way of writing that a script asks the form for anew; None for an ordinary POST."""
        return data.get(f"{NAME}.wanted")

    def fragment(self, wanted: str) -> HttpResponse:
        """The answer to a script that asked for the other way of writing."""
        response = HttpResponse(str(self.switched(wanted)))
        # The script tells the form from a login page by it.
        response["X-Part"] = NAME
        response["Cache-Control"] = "no-store"
        return response

    def render(self) -> SafeString:
        """Both ways of writing; the style sheet shows the one that is chosen."""
        rows = []
        if self.inputs is not None:
            rows = [(slot, self.inputs[slot.name], self.errors.get(slot.name, "")) for slot in self.inputs.slots]
        for _slot, field, error in rows if self.as_ == FIELDS else ():
            if error:
                own = f"{field.id_for_label}_error {field.id_for_label}_helptext"
                field.field.widget.attrs |= {"aria-invalid": "true", "aria-describedby": own}
        known = {slot.name for slot, _field, _error in rows} if self.as_ == FIELDS else set()
        elsewhere = {name: text for name, text in self.errors.items() if name not in known}
        context = {
            "form": self,
            "rows": rows,
            "others": self.inputs[self.inputs.others] if self.inputs is not None and self.inputs.has_others else None,
            "text": self.text[NAME],
            "general": [] if self.told_elsewhere and self.as_ == JSON else _lines(elsewhere),
            "writer": f"{self.handler.type}/{self.handler.name}" if self.handler is not None else "",
            "secret": bool(secret_names(self.handler)),
        }
        return mark_safe(render_to_string(TEMPLATE, context))  # noqa: S308 - escaped by the template

    __str__ = __html__ = render


def _lines(errors: Mapping[str, str]) -> list[str]:
    return [shown(f"{name}: {text}" if name else text, 600) for name, text in errors.items()]


def _named(writer: str) -> Handler | None:
    type_, _slash, name = writer.partition("/")
    try:
        return find(type_, name)
    except UnknownHandler:
        return None
