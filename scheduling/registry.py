"""What code can be scheduled. The database can name only what stands here.

```python
# workers.py of any installed app: found by autodiscovery, as admin.py is
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

from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.retry import RetryPolicy
from scheduling.run import Run

__all__ = [
    "Handler",
    "NoParams",
    "NonRetryableError",
    "RegistryError",
    "RetryPolicy",
    "RetryableError",
    "Run",
    "UnknownHandler",
    "find",
    "handlers",
    "register",
    "worker",
]

Function = TypeVar("Function", bound=Callable[..., Any])

ParamsModel = type[BaseModel]
"""A pydantic model class."""

RECYCLE_AFTER = 1_000
"""Runs after which a reused child is replaced, so that a slow leak stays small."""


class RegistryError(ValueError):
    """Code was registered in a way that cannot work."""


class UnknownHandler(LookupError):
    """No code is registered under this name; it may come with the next deploy."""


class NoParams(BaseModel):
    """The params model of a handler that takes none."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Handler:
    """Registered code and how it wants to be run.

    Args:
        type: `worker`, `report` or `reminder`.
        name: unique within its type; what the target row holds.
        call: takes the validated params and a `Run`.
        params: a pydantic model: validation, defaults and the admin's form.
        retry: the policy, or None for the settings'.
        time_limit: seconds, 0 for none, or None for the settings'.
        fresh: each run in a new child process.
        recycle_after: runs after which a reused child is replaced.
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
    """Make code schedulable.

    Raises:
        RegistryError: when the name is taken by other code or cannot be stored.
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
        RegistryError: when the name is taken, or the function cannot take `(params, run)`.
    """

    def decorate(function: Function) -> Function:
        try:
            inspect.signature(function).bind(object(), object())
        except TypeError:
            raise RegistryError(f"Worker {name!r} must accept two arguments: (params, run).") from None
        register(
            Handler(
                type="worker",
                name=name,
                call=function,
                params=params,
                retry=retry,
                time_limit=time_limit,
                fresh=fresh,
                recycle_after=recycle_after,
                title=title,
                description=description or inspect.getdoc(function) or "",
            )
        )
        return function

    return decorate


def find(type_: str, name: str) -> Handler:
    """The code registered under a name.

    Raises:
        UnknownHandler: with a sentence for operators.
    """
    try:
        return _handlers[type_, name]
    except KeyError:
        raise UnknownHandler(
            f"No {type_} is registered as {name!r} in this process. "
            "Deploy the code that registers it, or point the schedule at another target."
        ) from None


def handlers(type_: str | None = None) -> Iterator[Handler]:
    """All registered code, by name."""
    for key in sorted(_handlers):
        if type_ is None or key[0] == type_:
            yield _handlers[key]
