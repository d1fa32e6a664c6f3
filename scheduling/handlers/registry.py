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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, overload

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict

from scheduling.core.batch import Batching
from scheduling.core.breaker import CircuitBreaker, breaker_problem
from scheduling.core.queues import choice_problem
from scheduling.core.retry import RetryPolicy
from scheduling.core.run_limit import Limit
from scheduling.core.words import in_english
from scheduling.handlers.batch_run import BatchRun
from scheduling.handlers.error_rules import RETRY_ALL, ErrorRules
from scheduling.handlers.limit_key import limit_key_problem
from scheduling.handlers.limits import limits_problem
from scheduling.handlers.options import BatchOptions, RetryOf, When, WorkerOptions, handler_fields, unknown_option
from scheduling.handlers.registered import Fields, RegisteredBatch, RegisteredWorker, with_run
from scheduling.handlers.run import Run
from scheduling.handlers.schedule_option import schedule_problem
from scheduling.handlers.worker_function import function_problem

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
        call: the code to run; it is called with the validated params and a `Run`. A batch handler is called with a list
            of them and a `BatchRun`.
        params: the pydantic model of the params; it provides the validation, the defaults and the form in the admin.
        retry: the retry policy; None means the policy of the settings.
        time_limit: the time limit of a run in seconds; 0 means no limit; None means the limit of the settings.
        soft_time_limit: after so many seconds, `SoftTimeLimit` is raised in the handler; None means never.
        memory_limit: how much resident memory the processes of a run may use, in MiB, on Linux. None means no limit.
            With a limit, each run gets a new child process, so that the memory of earlier runs does not count.
        fresh: whether each run gets a new child process.
        recycle_after: after how many runs a reused child process is replaced.
        leaves_processes: whether processes that the handler has started and that still run when it returns or raises
            live on. If so, each run gets a new child process, too.
        errors: whether an error of the handler may be retried.
        schedule: the cron expression of a schedule that is made for this worker once, and then belongs to the operators
            (`handlers.default_schedules`). Empty: none is made.
        when: is asked before each attempt whether there is anything to do; None means that there always is.
        at_end: is called in the child when the handler has ended, before the end is recorded. It gets the answer that
            the child gives to its consumer: `outcome` (succeeded, failed, snoozed, skipped), and `result` (JSON), or
            `retryable`, `error_class`, `message` and `traceback`. Its errors are logged.
        queue: the queue of its runs (`core.queues`); empty means the main queue. A schedule or a run may name another.
        priority: `high`, `normal` or `low`; empty means normal.
        retry_of: gives the retry policy of one run, from its params; None: all runs have the same.
        limit: how many runs may run at once or start within a time; None means any number.
        breaker: when the runs wait, because what they need is down; None means never.
        batch: how the runs are gathered that one call gets; None: each run is called by itself.
        permission: `app_label.codename` of a permission. A user who lacks it sees the handler, its schedules and its
            runs, and cannot change or run them. Empty: no permission is asked for.
    """

    type: str
    name: str
    call: Callable[[Any, Any], Any]
    params: ParamsModel = NoParams
    retry: RetryPolicy | None = None
    time_limit: int | None = None
    soft_time_limit: float | None = None
    memory_limit: float | None = None
    fresh: bool = False
    recycle_after: int = RECYCLE_AFTER
    leaves_processes: bool = False
    errors: ErrorRules = RETRY_ALL
    when: When | None = None
    at_end: Callable[[Mapping[str, Any]], None] | None = None
    queue: str = ""
    priority: str = ""
    limit: Limit | None = None
    breaker: CircuitBreaker | None = None
    retry_of: RetryOf | None = None
    batch: Batching | None = None
    permission: str = ""
    schedule: str = ""
    title: str = ""
    description: str = ""

    @property
    def gets_new_child(self) -> bool:
        """Whether each run gets a new child process."""
        return self.fresh or self.leaves_processes or self.memory_limit is not None


_handlers: dict[tuple[str, str], Handler] = {}


@in_english()
def register(handler: Handler) -> None:
    """Register a handler.

    Raises:
        RegistryError: other code is registered under this name; the name does not have 1 to 100 characters; `params` is
            not a pydantic model class; `recycle_after` is less than 1; or a limit, `queue`, `priority`, `when`,
            `breaker` or `schedule` cannot be used.
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
    if handler.schedule and (problem := schedule_problem(handler.schedule, handler.params)):
        raise RegistryError(f"The schedule of {handler.type} {handler.name!r} cannot be used: {problem}")
    if handler.when is not None and not callable(handler.when):
        raise RegistryError(
            f"{handler.type.capitalize()} {handler.name!r}: when is a function, not {handler.when!r:.50}."
        )
    chosen = choice_problem(handler.queue, handler.priority) or breaker_problem(handler.breaker)
    chosen = chosen or limit_key_problem(handler.limit, handler.params)
    if problem := chosen or limits_problem(handler.time_limit, handler.soft_time_limit, handler.memory_limit):
        raise RegistryError(f"{handler.type.capitalize()} {handler.name!r}: {problem}")
    _handlers[handler.type, handler.name] = handler


def _home(call: Callable[..., Any]) -> str:
    return f"{getattr(call, '__module__', '?')}.{getattr(call, '__qualname__', repr(call))}"


@overload
def worker(
    name: str, **options: Unpack[WorkerOptions]
) -> Callable[[Callable[[Any, Run], Result]], RegisteredWorker[[], Any, Result]]: ...


@overload
def worker(
    name: str, *, params: Callable[Fields, Model], **options: Unpack[WorkerOptions]
) -> Callable[[Callable[[Model, Run], Result]], RegisteredWorker[Fields, Model, Result]]: ...


@overload
def worker(
    name: str, **options: Unpack[BatchOptions]
) -> Callable[[Callable[[list[Any], BatchRun], Result]], RegisteredBatch[[], Any, Result]]: ...


@overload
def worker(
    name: str, *, params: Callable[Fields, Model], **options: Unpack[BatchOptions]
) -> Callable[[Callable[[list[Model], BatchRun], Result]], RegisteredBatch[Fields, Model, Result]]: ...


def worker(name: str, *, params: Any = NoParams, **options: Any) -> Any:
    """Register a function as a worker; see `WorkerOptions`. It may be `async def`. It gets the method `run`.

    With the option `batch_size` (`BatchOptions`), the function gets a list of params and a `BatchRun`.

    A function may be registered under several names. Each call of the decorator then returns a function of its own.

    Raises:
        RegistryError: `register` refuses the handler, the function cannot take `(params, run)` or contains `yield`,
            `retry_on`, `give_up_on`, `retry_if` or `batch_size` cannot be used, or there is no name.
        TypeError: there is no such option.
    """
    fields = checked_options("worker", name, options, BatchOptions)

    def decorate(function: Any) -> Any:
        if problem := function_problem(function, is_batch="batch" in fields):
            raise RegistryError(f"Worker {name!r} {problem}")
        text = fields.get("description") or inspect.getdoc(function) or ""
        register(Handler(type="worker", name=name, call=function, params=params, **{**fields, "description": text}))
        return with_run(function, name, params)

    return decorate


def checked_options(type_: str, name: object, options: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Check the name and the options that a decorator was given; returns the options as fields of `Handler`.

    Args:
        type_: the type of the handler, which is also the name of the decorator.
        known: the TypedDict of the decorator's options.

    Raises:
        RegistryError: there is no name, because the decorator stands without parentheses; or an option cannot be used.
        TypeError: there is no such option.
    """
    if not isinstance(name, str):
        called = getattr(name, "__name__", None)
        wanted = f'write @{type_}("{called}") above {called}' if called else f"it is a text, not {name!r:.50}"
        raise RegistryError(f"@{type_} needs a name: {wanted}.")
    if problem := unknown_option(type_, options, known):
        raise TypeError(problem)
    try:
        return handler_fields(options)
    except ValueError as error:
        raise RegistryError(f"{type_.capitalize()} {name!r}: {error}") from None


def find(type_: str, name: str) -> Handler:
    """The handler of this type and name.

    Raises:
        UnknownHandler: no such handler is registered in this process. The text of the error is for operators.
    """
    try:
        return _handlers[type_, name]
    except KeyError:
        said = _(
            "No %(type)s is registered as %(name)r in this process. Deploy the code that registers it, or point the "
            "schedule at another target."
        )
        raise UnknownHandler(said % {"type": type_, "name": name}) from None


def handlers(type_: str | None = None) -> Iterator[Handler]:
    """All handlers, or only the handlers of one type, ordered by type and name."""
    for key in sorted(_handlers):
        if type_ is None or key[0] == type_:
            yield _handlers[key]


def handler_modules() -> list[str]:
    """The names of the modules that define the registered code, without repeats."""
    return sorted({getattr(handler.call, "__module__", "") or "" for handler in handlers()})
