"""Defines the decorator `@report`, which registers a ReportController. Only registered controllers can be scheduled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from reports.controller import ReportController
from reports.delivery import deliver
from reports.options import accepting
from reports.renderers import RENDERERS
from scheduling.core.retry import RetryPolicy
from scheduling.handlers import Handler, NoParams, RegistryError, Run, register

Controller = TypeVar("Controller", bound=type[ReportController])


def report(
    name: str,
    *,
    params: type[BaseModel] = NoParams,
    retry: RetryPolicy | None = None,
    time_limit: int | None = None,
    title: str = "",
    description: str = "",
) -> Callable[[Controller], Controller]:
    """Register a ReportController subclass under a name. The Report row holds this name in `controller`.

    Args:
        name: 1 to 100 characters, unique among reports.
        params: a pydantic model. The report also accepts the param `options_interface`.
        retry: the retry policy. None means the policy of the settings.
        time_limit: the time limit in seconds. 0 means no limit, None means the limit of the settings.
        title: the title of the Report row that `migrate` creates. The default is the class's `title`.
        description: the description of that Report row. The default is the class's docstring.

    Raises:
        RegistryError: when the name is taken or has a wrong length, when `params` is not a pydantic model, or when the
            class is not a complete report.
    """

    def decorate(controller: Controller) -> Controller:
        _refuse_unusable(name, controller)
        if not (isinstance(params, type) and issubclass(params, BaseModel)):
            raise RegistryError(f"The params of report {name!r} must be a pydantic model class.")
        register(
            Handler(
                type="report",
                name=name,
                call=_call(controller),
                params=accepting(params),
                retry=retry,
                time_limit=time_limit,
                fresh=True,  # a report may use much memory, and the end of its process frees this memory
                title=title or controller.title,
                description=description or inspect.cleandoc(controller.__doc__ or ""),
            )
        )
        return controller

    return decorate


def _call(controller: type[ReportController]) -> Callable[[Any, Run], Any]:
    def call(params: Any, run: Run) -> dict[str, Any]:
        artefacts = deliver(controller(), params, run)
        return {"rows": artefacts[0].rows, "files": [artefact.filename for artefact in artefacts]}

    # The registry compares `__module__` and `__qualname__` to detect two classes that are registered under one name.
    call.__module__, call.__qualname__ = controller.__module__, controller.__qualname__
    return call


def _refuse_unusable(name: str, controller: Any) -> None:
    if not (isinstance(controller, type) and issubclass(controller, ReportController)):
        raise RegistryError(f"Report {name!r} must be a subclass of ReportController, not {controller!r}.")
    columns = controller.columns
    if isinstance(columns, str) or not columns or not all(isinstance(column, str) and column for column in columns):
        raise RegistryError(f'Report {name!r} needs columns: a tuple of names, such as ("user", "total").')
    if len(set(columns)) != len(columns):
        raise RegistryError(f"Report {name!r} names a column twice: {', '.join(columns)}.")
    formats = controller.formats
    if isinstance(formats, str) or not formats or len(set(formats) & set(RENDERERS)) != len(formats):
        known = ", ".join(sorted(RENDERERS))
        raise RegistryError(f"The formats of report {name!r} are one or more of {known}, each once.")
    if controller.rows is ReportController.rows:
        raise RegistryError(f"Report {name!r} needs a method rows(self, params, run) that yields its rows.")
    try:
        inspect.signature(controller.rows).bind(object(), object(), object())
        inspect.signature(controller).bind()
    except TypeError:
        raise RegistryError(
            f"Report {name!r} must be made without arguments, and its rows() must accept (self, params, run)."
        ) from None
