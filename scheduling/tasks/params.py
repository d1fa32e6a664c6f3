"""The params model of a task: its positional arguments and its keyword arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from django.utils.translation import gettext
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator


class TaskParams(BaseModel):
    """The arguments of a task. They must fit the signature of its function."""

    model_config = ConfigDict(extra="forbid")

    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)

    bind: ClassVar[Callable[..., object]]
    """Raises TypeError for arguments that the function cannot take."""

    @model_validator(mode="after")
    def _fit(self) -> TaskParams:
        try:
            type(self).bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise ValueError(gettext("the function cannot be called with them: %(error)s") % {"error": error}) from None
        return self


def params_model(function: Callable[..., Any], takes_context: bool) -> type[TaskParams]:
    """The params model of a task's function.

    Args:
        takes_context: whether the first argument is Django's TaskContext, which the params do not have.
    """
    signature = inspect.signature(function)
    if takes_context:
        _first, *others = signature.parameters.values()
        signature = signature.replace(parameters=others)
    # The description tells operators the arguments. It is also a part of the contract's hash (handlers.contract), so a
    # run whose arguments this version of the code refuses waits for a consumer with the version that takes them.
    described: Any = (list[Any], Field(default_factory=list, description=_described(function.__name__, signature)))
    model = create_model("TaskParams", __base__=TaskParams, args=described)
    model.bind = signature.bind
    return model


def _described(name: str, signature: inspect.Signature) -> str:
    """The signature without annotations and values, whose text may differ between two processes."""
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        text = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
        parts.append(text if parameter.default is parameter.empty else f"{text}=…")
    return f"{name}({', '.join(parts)})"
