"""Parts that pages share; other apps' admin pages may import from here, and beside it only the bases
`masked.MaskedParams` (secrets are hidden from who may only look), `hidden_secrets.HiddenSecrets` (and from who edits),
`trailed.Trailed` (old and new values in the log),
`edit_history.EditHistory` (shows them) and `legible.Legible` (text of a row that is fit to be looked at).

`state_chip(state)` and `chip(word, icon, tone)` show a status by icon, word and colour.
`registered_chip(type, name)` says whether the code behind a target row is known here.
`params_table(model)` shows a params model's fields; `default_problems(handler, params)` says why a
target row's defaults do not fit it. `PrettyJSONField` edits a JSON object and `pretty` shows one.
`when`, `stamp`, `ago`, `length` show instants and lengths; `shown` and `first_line` make text from
anywhere fit to be looked at. All of them need `MEDIA` on the page.
"""

from __future__ import annotations

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scheduling.admin.chips import active_chip, chip, icon, outcome_chip, process_chip, registered_chip, state_chip
from scheduling.admin.json_field import PrettyJSONField, PrettyJSONWidget, pretty
from scheduling.admin.params_model import default_problems, masked, params_table
from scheduling.admin.text import first_line, shown
from scheduling.admin.times import EMPTY, ago, length, relative, stamp, took, when

__all__ = [
    "EMPTY",
    "MEDIA",
    "PrettyJSONField",
    "PrettyJSONWidget",
    "active_chip",
    "ago",
    "chip",
    "default_problems",
    "first_line",
    "icon",
    "json_block",
    "length",
    "masked",
    "outcome_chip",
    "params_table",
    "pretty",
    "process_chip",
    "registered_chip",
    "relative",
    "shown",
    "stamp",
    "state_chip",
    "took",
    "when",
]

MEDIA = forms.Media(css={"all": ["scheduling/admin.css"]})
"""The style sheet of all of it."""

JSON_LIMIT = 20_000


def json_block(value: object) -> SafeString:
    """A JSON value, indented, to be read; what is longer than a screen or two is cut."""
    return format_html('<pre class="sch-code" tabindex="0">{}</pre>', shown(pretty(value), JSON_LIMIT))
