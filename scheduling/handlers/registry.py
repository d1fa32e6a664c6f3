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
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from scheduling.core.retry import RetryPolicy
from scheduling.handlers.run import Run

Function = TypeVar("Function", bound=Callable[..., Any])

ParamsModel = type[BaseModel]
"""A pydantic model class."""

RECYCLE_AFTER = 1_000
"""How many runs a reused child makes before it is replaced. The limit keeps a slow memory leak small."""


class RegistryError(ValueError):
    """A handler cannot be registered."""


class UnknownHandler(LookupError):
    """No handler is registered under this name. The next deploy may bring the handler's code."""


class NoParams(BaseModel):
    """The params model of a handler without params."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Handler:
    """Registered code and the settings of its runs.

    Args:
        type: one of `core.targets.TARGET_KINDS`.
        name: the name in the target row, unique within the type.
        call: takes the validated params and a `Run`.
        params: a pydantic model, which gives the validation, the defaults and the admin's form.
        retry: the retry policy; None means the settings' policy.
        time_limit: the limit of a run in seconds; 0 means no limit; None means that the limit of the settings applies.
        fresh: whether each run gets a new child process.
        recycle_after: how many runs a reused child process makes before it is replaced.
    """

    type: str
    name: str
    call: Callable[[Any, Run], Any]
    params: ParamsModel = NoParams
    retry: RetryPolicy | None = None
    time_limit: int | None = None
    fresh: bool = False
    recycle_after: int = RECYCLE_AFTER
    title: str = ""
    description: str = ""


_handlers: dict[tuple[str, str], Handler] = {}


def register(handler: Handler) -> None:
    """Register a handler.

    Raises:
        RegistryError: the name belongs to other code or cannot be stored, or the params or `recycle_after` are wrong.
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


def worker(
    name: str,
    *,
    params: type[BaseModel] = NoParams,
    retry: RetryPolicy | None = None,
    time_limit: int | None = None,
    fresh: bool = False,
    recycle_after: int = RECYCLE_AFTER,
    title: str = "",
    description: str = "",
) -> Callable[[Function], Function]:
    """Register a function as a worker; see `Handler` for the arguments.

    Raises:
        RegistryError: `register` refuses the handler, or the function cannot take `(params, run)`.
    """

    def decorate(function: Function) -> Function:
        try:
            inspect.signature(function).bind(object(), object())
        except TypeError:
            raise RegistryError(f"Worker {name!r} must accept two arguments: (params, run).") from None
        text = description or inspect.getdoc(function) or ""
        register(Handler("worker", name, function, params, retry, time_limit, fresh, recycle_after, title, text))
        return function

    return decorate


def find(type_: str, name: str) -> Handler:
    """The handler that is registered under a name.

    Raises:
        UnknownHandler: no handler has this name. The error's text is a sentence for operators.
    """
    try:
        return _handlers[type_, name]
    except KeyError:
        raise UnknownHandler(
            f"No {type_} is registered as {name!r} in this process. "
            "Deploy the code that registers it, or point the schedule at another target."
        ) from None


def handlers(type_: str | None = None) -> Iterator[Handler]:
    """All handlers, or the handlers of one type, ordered by type and name."""
    for key in sorted(_handlers):
        if type_ is None or key[0] == type_:
            yield _handlers[key]
