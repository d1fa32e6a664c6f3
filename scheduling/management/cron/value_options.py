"""The options of `add` and `edit`: the values of a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ConfigDict, TypeAdapter, ValidationError

from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.management.cron.checked import checked
from scheduling.management.cron.params_options import add_params, json_or_text, read_params
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_values import ScheduleValues

NAMED = ("name", "description", "schedule", "date_time", "timezone", *TARGET_KINDS, "group")
"""The columns with an option of their own. `--set` gives every column."""

FIELDS = {name: field for name, field in ScheduleValues.model_fields.items() if name != "id"}


def add_values(parser: ArgumentParser) -> None:
    """An option for each usual column, --set, --param and --params."""
    for name in NAMED:
        option, text = f"--{name.replace('_', '-')}", (FIELDS[name].description or "").replace("%", "%%")
        parser.add_argument(option, dest=name, metavar=name.upper(), help=text or None)
    others = ", ".join(name for name in FIELDS if name not in (*NAMED, "params"))
    column = f"a column (may be given several times); besides the options: {others}. null: no value"
    parser.add_argument("--set", action="append", default=[], metavar="COLUMN=VALUE", help=column)
    add_params(parser)


def read_values(options: Mapping[str, Any], own: object = None) -> dict[str, Any]:
    """The values that the options give, see `ScheduleValues`.

    Args:
        own: the present params of the schedule, with masked secrets.

    Raises:
        Refused: INVALID, with a problem for each wrong value.
    """
    given: dict[str, Any] = {name: _value(name, options[name]) for name in NAMED if options[name] is not None}
    for text in options["set"]:
        name, equals, value = text.partition("=")
        if not equals or name not in FIELDS:
            said = _("“%(text)s”: write a column and a value, such as --set time_limit=60. Columns: %(columns)s.")
            facts = {"text": visible_text(text, 80), "columns": ", ".join(FIELDS)}
            raise Refused.value("set", said % facts)
        given[name] = _value(name, value)
    params = read_params(options, own)
    if params is not None:
        given["params"] = params
    return checked(ScheduleValues, **given).given()


def _value(name: str, text: str) -> Any:
    """The text if the column holds texts, or else the JSON value."""
    if text == "null":
        return None
    try:
        kind: Any = FIELDS[name].annotation
        TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(text)
    except ValidationError:
        return json_or_text(text)
    return text
