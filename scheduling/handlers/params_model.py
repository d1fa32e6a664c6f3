"""Makes instances of params models from JSON data, and JSON data from instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy
from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python


class ParamsInvalid(ValueError):
    """Params do not fit the handler's params model.

    `errors` maps the dotted name of a field to a sentence. The name is '' for an error that concerns no single field.
    """

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" if name else text for name, text in errors.items()))
        self.errors = errors


def instance(model: type[BaseModel], params: Mapping[str, Any]) -> BaseModel:
    """The params as an instance of a params model.

    Raises:
        ParamsInvalid: the params do not fit. The error has a sentence for each wrong field.
    """
    try:
        return model.model_validate(dict(params))
    except ValidationError as error:
        errors: dict[str, str] = {}
        for problem in error.errors(include_url=False, include_input=False):
            errors.setdefault(".".join(str(part) for part in problem["loc"]), _sentence(problem))
        raise ParamsInvalid(errors) from None


def stored(params: BaseModel) -> dict[str, Any]:
    """The fields that were set, as JSON data. The params model reads them back from it.

    Raises:
        ValueError: a field has a value that is not JSON.
    """
    fields = _revealed(params.model_dump(by_alias=True, exclude_unset=True))
    try:
        found: dict[str, Any] = to_jsonable_python(fields)
    except PydanticSerializationError as error:
        raise ValueError(f"The parameters are not JSON: {error}") from None
    return found


def plain_defaults(model: type[BaseModel]) -> dict[str, Any]:
    """The default values of the fields of a params model, by name. A default that a function makes is left out."""
    fields = model.model_fields.items()
    return {name: field.default for name, field in fields if not field.is_required() and field.default_factory is None}


def _revealed(value: Any) -> Any:
    """The value with the contents of pydantic's secrets. As JSON, pydantic would write stars."""
    match value:
        case SecretStr() | SecretBytes() | Secret():
            return value.get_secret_value()
        case dict():
            return {name: _revealed(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_revealed(item) for item in value]
        case _:
            return value


_PLAIN = {
    "missing": gettext_lazy("must be given"),
    "extra_forbidden": gettext_lazy("there is no such parameter"),
    "greater_than_equal": gettext_lazy("must be at least %(ge)s"),
    "greater_than": gettext_lazy("must be more than %(gt)s"),
    "less_than_equal": gettext_lazy("must be at most %(le)s"),
    "less_than": gettext_lazy("must be less than %(lt)s"),
    "int_type": gettext_lazy("must be a whole number"),
    "int_parsing": gettext_lazy("must be a whole number"),
    "int_from_float": gettext_lazy("must be a whole number"),
    "float_type": gettext_lazy("must be a number"),
    "float_parsing": gettext_lazy("must be a number"),
    "bool_type": gettext_lazy("must be true or false"),
    "bool_parsing": gettext_lazy("must be true or false"),
    "string_type": gettext_lazy("must be a text"),
    "list_type": gettext_lazy("must be a list"),
    "dict_type": gettext_lazy("must be a JSON object"),
    "model_type": gettext_lazy("must be a JSON object"),
    "literal_error": gettext_lazy("must be one of these: %(expected)s"),
}
"""Maps the types of pydantic's most frequent errors to plain words. All other errors keep the words of pydantic."""


def _sentence(problem: Mapping[str, Any]) -> str:
    plain = _PLAIN.get(problem["type"])
    return str(problem["msg"]) if plain is None else str(plain) % problem.get("ctx", {})
