"""Registers the handlers. A row in the database can start only code that is registered here.

```python
# This is workers.py of an installed app. It is imported automatically, like admin.py.
class SyncParams(BaseModel):
    region: Literal["eu", "us"] = "eu"

@worker("sync_tokens", params=SyncParams, retry=RetryPolicy(max_retries=5), time_limit=600)
def sync_tokens(params: SyncParams, run: Run) -> None:
    run.log.info("syncing %s", params.region)
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, Unpack, overload

from pydantic import BaseModel, ConfigDict

from scheduling.core.retry import RetryPolicy
from scheduling.handlers.error_rules import RETRY_ALL, ErrorRules, Errors, RetryIf
from scheduling.handlers.registered import Fields, RegisteredWorker, run_of
from scheduling.handlers.run import Run

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")

ParamsModel = type[BaseModel]
"""The type of a params model: a subclass of pydantic's `BaseModel`."""

RECYCLE_AFTER = 1_000
"""After how many runs a reused child process is replaced, so that a slow memory leak stays small."""


class RegistryError(ValueError):
    """A handler cannot be registered."""


class UnknownHandler(LookupError):
    """No handler is registered under this name in this process."""


class NoParams(BaseModel):
    """The params model of a handler without params."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Handler:
    """Registered code and the settings of its runs.

    Args:
        type: one of `core.targets.TARGET_KINDS`.
        name: the name in the target row, unique within the type.
        call: the code to run; it is called with the validated params and a `Run`.
        params: the pydantic model of the params; it provides the validation, the defaults and the form in the admin.
        retry: the retry policy; None means the policy of the settings.
        time_limit: the time limit of a run in seconds; 0 means no limit; None means the limit of the settings.
        fresh: whether each run gets a new child process.
        recycle_after: after how many runs a reused child process is replaced.
        leaves_processes: whether processes that the handler has started and that still run when it returns or raises
            live on. If so, each run gets a new child process, too.
        errors: whether an error of the handler may be retried.
        permission: `app_label.codename` of a permission. A user who lacks it sees the handler, its schedules and its
            runs, and cannot change or run them. Empty: no permission is asked for.
    """

    type: str
    name: str
    call: Callable[[Any, Run], Any]
    params: ParamsModel = NoParams
    retry: RetryPolicy | None = None
    time_limit: int | None = None
    fresh: bool = False
    recycle_after: int = RECYCLE_AFTER
    leaves_processes: bool = False
    errors: ErrorRules = RETRY_ALL
    permission: str = ""
    title: str = ""
    description: str = ""


_handlers: dict[tuple[str, str], Handler] = {}


def register(handler: Handler) -> None:
    """Register a handler.

    Raises:
        RegistryError: other code is registered under this name; the name does not have 1 to 100 characters; `params` is
            not a pydantic model class; or `recycle_after` is less than 1.
    """
    if not handler.name or len(handler.name) > 100:
        raise RegistryError(f"A {handler.type}'s name has 1 to 100 characters, not {handler.name!r}.")
    taken = _handlers.get((handler.type, handler.name))
    if taken is not None and _home(taken.call) != _home(handler.call):
        raise RegistryError(
            f"Two {handler.type}s are registered as {handler.name!r}: {_home(taken.call)} and {_home(handler.call)}."
        )
    if not (isinstance(handler.params, type) and issubclass(handler.params, BaseModel)):
        raise RegistryError(f"The params of {handler.type} {handler.name!r} must be a pydantic model class.")
    if handler.recycle_after < 1:
        raise RegistryError(f"recycle_after of {handler.type} {handler.name!r} must be at least 1.")
    _handlers[handler.type, handler.name] = handler


def _home(call: Callable[..., Any]) -> str:
    return f"{getattr(call, '__module__', '?')}.{getattr(call, '__qualname__', repr(call))}"


class WorkerOptions(TypedDict, total=False):
    """What a worker may say besides its name and its params; see `Handler` and `ErrorRules`."""

    retry: RetryPolicy | None
    time_limit: int | None
    fresh: bool
    recycle_after: int
    leaves_processes: bool
    permission: str
    title: str
    description: str
    retry_on: Errors
    give_up_on: Errors
    retry_if: RetryIf | None


RULES = ("retry_on", "give_up_on", "retry_if")
"""The options that become `Handler.errors`."""


@overload
def worker(
    name: str, **options: Unpack[WorkerOptions]
) -> Callable[[Callable[[Any, Run], Result]], RegisteredWorker[[], Any, Result]]: ...


@overload
def worker(
    name: str, *, params: Callable[Fields, Model], **options: Unpack[WorkerOptions]
) -> Callable[[Callable[[Model, Run], Result]], RegisteredWorker[Fields, Model, Result]]: ...


def worker(name: str, *, params: Any = NoParams, **options: Any) -> Any:
    """Register a function as a worker; see `WorkerOptions`. The function gets the method `run`.

    Raises:
        RegistryError: `register` refuses the handler, the function cannot take `(params, run)`, or `retry_on`,
            `give_up_on` or `retry_if` cannot be used.
        TypeError: there is no such option.
    """
    if unknown := sorted(options.keys() - WorkerOptions.__annotations__.keys()):
        raise TypeError(f"worker() has no argument {', '.join(unknown)}.")
    try:
        errors = ErrorRules.of(**{rule: options.pop(rule) for rule in RULES if rule in options})
    except ValueError as error:
        raise RegistryError(f"Worker {name!r}: {error}") from None

    def decorate(function: Any) -> Any:
        try:
            inspect.signature(function).bind(object(), object())
        except TypeError:
            raise RegistryError(f"Worker {name!r} must accept two arguments: (params, run).") from None
        text = options.get("description") or inspect.getdoc(function) or ""
        own = {**options, "description": text, "errors": errors}
        register(Handler(type="worker", name=name, call=function, params=params, **own))
        with suppress(AttributeError):  # a callable may allow no attributes, such as a method
            function.run = run_of(name, params)
        return function

    return decorate


def find(type_: str, name: str) -> Handler:
    """The handler of this type and name.

    Raises:
        UnknownHandler: no such handler is registered in this process. The text of the error is for operators.
    """
    try:
        return _handlers[type_, name]
    except KeyError:
        raise UnknownHandler(
            f"No {type_} is registered as {name!r} in this process. "
            "Deploy the code that registers it, or point the schedule at another target."
        ) from None


def handlers(type_: str | None = None) -> Iterator[Handler]:
    """All handlers, or only the handlers of one type, ordered by type and name."""
    for key in sorted(_handlers):
        if type_ is None or key[0] == type_:
            yield _handlers[key]


def handler_modules() -> list[str]:
    """The names of the modules that define the registered code, without repeats."""
    return sorted({getattr(handler.call, "__module__", "") or "" for handler in handlers()})
