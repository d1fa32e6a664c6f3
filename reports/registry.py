"""Defines the decorator `@report`, which registers a ReportController. Only registered controllers can be scheduled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from reports.controller import ReportController
from reports.delivery import deliver
from reports.options import accepting, options_of
from reports.renderers import FORMATS, RENDERERS
from scheduling.handlers import Handler, NoParams, RegistryError, Run, register
from scheduling.handlers.options import HandlerOptions
from scheduling.handlers.registry import checked_options

Controller = TypeVar("Controller", bound=type[ReportController])


def report(
    name: str, *, params: type[BaseModel] = NoParams, **options: Unpack[HandlerOptions]
) -> Callable[[Controller], Controller]:
    """Register a ReportController subclass under a name. The Report row holds this name in `controller`.

    Args:
        name: 1 to 100 characters, unique among reports.
        params: a pydantic model. The report also accepts the param `options_interface`.
        options: the same as for `scheduling.handlers.worker`. The default `title` is the class's `title`, and the
            default `description` is the class's docstring. A report may use much memory, so each of its runs gets a new
            child process: there is no option `fresh`.

    Raises:
        RegistryError: when the name is missing, is taken or has a wrong length, when `params` is not a pydantic model,
            when an option cannot be used, or when the class is not a complete report.
        TypeError: there is no such option.
    """
    fields = checked_options("report", name, options, HandlerOptions)

    def decorate(controller: Controller) -> Controller:
        _refuse_unusable(name, controller)
        if not (isinstance(params, type) and issubclass(params, BaseModel)):
            raise RegistryError(f"The params of report {name!r} must be a pydantic model class.")
        texts = {
            "title": fields.get("title") or controller.title,
            "description": fields.get("description") or inspect.cleandoc(controller.__doc__ or ""),
        }
        call, model = ReportCall(controller), accepting(params)
        register(Handler(type="report", name=name, call=call, params=model, fresh=True, **{**fields, **texts}))
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
