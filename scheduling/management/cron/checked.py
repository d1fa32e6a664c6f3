"""Checks values of the command line against a model, and refuses them with a sentence for each."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from scheduling.core.text import visible_text
from scheduling.operations.refused import Problem, Refused

Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], **values: Any) -> Model:
    """An object of the model.

    Raises:
        Refused: INVALID, with a problem for each wrong value.
    """
    try:
        return model(**values)
    except ValidationError as error:
        raise Refused.invalid(_problems(error)) from None


def _problems(error: ValidationError) -> list[Problem]:
    found: dict[str, Problem] = {}
    for one in error.errors(include_url=False, include_input=False):
        name = visible_text(".".join(map(str, one["loc"][:1])), 60)
        found.setdefault(name, Problem(name, one["type"], visible_text(one["msg"], 300)))
    return list(found.values())
