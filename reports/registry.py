"""`@report`: makes a ReportController schedulable. The database can name only what stands here."""

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
from scheduling.registry import Handler, NoParams, RegistryError, register
from scheduling.run import Run

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
    """Register a ReportController subclass; its name is the Report row's `controller`.

    Args:
        name: unique among reports, 1 to 100 characters.
        params: a pydantic model; `options_interface` is accepted beside its fields.
        retry: the policy, or None for the settings'.
        time_limit: seconds, 0 for none, or None for the settings'.
        title: of the Report row that `migrate` makes; default: the class's `title`.
        description: likewise; default: the class's docstring.

    Raises:
        RegistryError: when the name is taken or the class cannot make a report.
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
                fresh=True,  # a report may use much memory; its process ends with it
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

    # The registry tells two handlers of one name apart by these.
    call.__module__, call.__qualname__ = controller.__module__, controller.__qualname__
    return call


def _refuse_unusable(name: str, controller: Any) -> None:
    if not (isinstance(controller, type) and issubclass(controller, ReportController)):
        raise RegistryError(f"Report {name!r} must be a subclass of ReportController, not {controller!r}.")
    columns = controller.columns
    if isinstance(columns, str) or not columns or not all(isinstance(each, str) and each for each in columns):
        raise RegistryError(f'Report {name!r} needs columns: a tuple of names, such as ("user", "total").')
    if len(set(columns)) != len(columns):
        raise RegistryError(f"Report {name!r} names a column twice: {', '.join(columns)}.")
    formats = controller.formats
    if (
        isinstance(formats, str)
        or not formats
        or len(set(formats)) != len(formats)
        or not set(formats) <= set(RENDERERS)
    ):
        raise RegistryError(
            f"The formats of report {name!r} are one or more of {', '.join(sorted(RENDERERS))}, each once."
        )
    if controller.rows is ReportController.rows:
        raise RegistryError(f"Report {name!r} needs a method rows(self, params, run) that yields its rows.")
    try:
        inspect.signature(controller.rows).bind(object(), object(), object())
        inspect.signature(controller).bind()
    except TypeError:
        raise RegistryError(
            f"Report {name!r} must be made without arguments, and its rows() must accept (self, params, run)."
        ) from None
