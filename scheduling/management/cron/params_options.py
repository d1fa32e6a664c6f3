"""The options `--param key=value` and `--params JSON`, which the verbs that take params share."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.json_bounds import NotStorable, loads
from scheduling.core.text import visible_text
from scheduling.operations.refused import Refused


def add_params(parser: ArgumentParser) -> None:
    """--param and --params."""
    one = "one parameter; the value is JSON, or else a text (may be given several times)"
    parser.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help=one)
    parser.add_argument("--params", metavar="JSON", help="all parameters, as a JSON object")


def read_params(options: Mapping[str, Any], own: object = None) -> dict[str, Any] | None:
    """The params that the options give; None if they give none.

    Args:
        own: the present params with masked secrets. `--param` changes them, and `--params` replaces them.

    Raises:
        Refused: INVALID.
    """
    if options["params"] is None and not options["param"]:
        return None
    found = _whole(options["params"]) if options["params"] is not None else own
    values = dict(found) if isinstance(found, Mapping) else {}
    for text in options["param"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            said = _("“%(text)s”: write a name and a value, such as --param region=eu.")
            raise Refused.value("params", said % {"text": visible_text(text, 80)})
        values[name] = json_or_text(value)
    return values


def json_or_text(text: str) -> Any:
    """The JSON value that the text is, or else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _whole(text: str) -> Any:
    try:
        found = loads(text)
    except NotStorable as error:
        raise Refused.value("params", error.about(_("The value of --params"))) from None
    if not isinstance(found, dict):
        raise Refused.value("params", _('The value of --params is no JSON object, such as {"region": "eu"}.'))
    return found
