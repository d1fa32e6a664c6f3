"""Defines the decorator `@report`, which registers a ReportController. Only registered controllers can be scheduled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from reports.controller import ReportController
from reports.delivery import deliver
from reports.options import accepting, options_of
from reports.renderers import FORMATS, RENDERERS
from scheduling.core.retry import RetryPolicy
from scheduling.handlers import Handler, NoParams, RegistryError, Run, register

Controller = TypeVar("Controller", bound=type[ReportController])


def report(
    name: str,
    *,
    params: type[BaseModel] = NoParams,
    retry: RetryPolicy | None = None,
    time_limit: int | None = None,
    permission: str = "",
    title: str = "",
    description: str = "",
) -> Callable[[Controller], Controller]:
    """Register a ReportController subclass under a name. The Report row holds this name in `controller`.

    Args:
        name: 1 to 100 characters, unique among reports.
        params: a pydantic model. The report also accepts the param `options_interface`.
        retry: the retry policy. None means the policy of the settings.
        time_limit: the time limit in seconds. 0 means no limit, None means the limit of the settings.
        permission: `app_label.codename` of the permission to change and run the report. Empty: none is asked for.
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
                call=ReportCall(controller),
                params=accepting(params),
                retry=retry,
                time_limit=time_limit,
                fresh=True,  # a report may use much memory, and the end of its process frees this memory
                permission=permission,
                title=title or controller.title,
                description=description or inspect.cleandoc(controller.__doc__ or ""),
            )
        )
        return controller

    return decorate


class ReportCall:
    """The code of a report's handler: a call makes the files and delivers them."""

    def __init__(self, controller: type[ReportController]) -> None:
        self.controller = controller
        # The registry of handlers compares these two names to detect two classes that are registered under one name.
        self.__module__, self.__qualname__ = controller.__module__, controller.__qualname__

    def __call__(self, params: Any, run: Run) -> dict[str, Any]:
        artefacts = deliver(self.controller(), params, run, options_of(params))
        return {"rows": artefacts[0].rows, "files": [artefact.filename for artefact in artefacts]}


def controller_of(handler: Handler) -> type[ReportController] | None:
    """The controller of a handler; None if `@report` has not registered the handler."""
    return handler.call.controller if isinstance(handler.call, ReportCall) else None


def _refuse_unusable(name: str, controller: Any) -> None:
    if not (isinstance(controller, type) and issubclass(controller, ReportController)):
        raise RegistryError(f"Report {name!r} must be a subclass of ReportController, not {controller!r}.")
    _refuse_columns(name, controller)
    _refuse_formats(name, controller)
    if controller.rows is ReportController.rows:
        raise RegistryError(f"Report {name!r} needs a method rows(self, params, run) that yields its rows.")
    try:
        inspect.signature(controller.rows).bind(object(), object(), object())
        inspect.signature(controller).bind()
    except TypeError:
        raise RegistryError(
            f"Report {name!r} must be made without arguments, and its rows() must accept (self, params, run)."
        ) from None


def _refuse_columns(name: str, controller: type[ReportController]) -> None:
    columns = controller.columns
    if isinstance(columns, str) or not columns or not all(isinstance(column, str) and column for column in columns):
        raise RegistryError(f'Report {name!r} needs columns: a tuple of names, such as ("user", "total").')
    if len(set(columns)) != len(columns):
        raise RegistryError(f"Report {name!r} names a column twice: {', '.join(columns)}.")


def _refuse_formats(name: str, controller: type[ReportController]) -> None:
    formats = controller.formats
    if isinstance(formats, str) or not formats or len(set(formats) & set(FORMATS)) != len(formats):
        raise RegistryError(f"The formats of report {name!r} are one or more of {', '.join(FORMATS)}, each once.")
    for format_ in formats:  # a package that is not installed is a warning (checks.py): it must not stop the project
        if problem := RENDERERS[format_].misfit(controller.columns):
            raise RegistryError(f"Report {name!r} cannot be written. {problem}")
