"""Registers listeners: functions that the events of a topic call.

```python
@listener("invoice.due", params=InvoiceParams)
def remind(params: InvoiceParams, run: Run) -> None: ...
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from scheduling.core.events import topic_problem
from scheduling.core.steps import StepError, check_name
from scheduling.handlers.registry import RegistryError
from scheduling.handlers.run import Run
from scheduling.handlers.secret_types import is_secret

Function = TypeVar("Function", bound=Callable[..., Any])

TYPE = "topic"
"""The type under which the processes record the listeners that they know (`handlers.known`)."""


@dataclass(frozen=True)
class Listener:
    """A function that the events of a topic call.

    Args:
        name: the name of its step, unique within the topic.
        call: it is called with the params and the run.
        params: the model of the payload; None: it gets the payload as a mapping.
        atomic: whether it runs in a transaction that also stores that it has finished (`Run.step`).
    """

    topic: str
    name: str
    call: Callable[[Any, Run], Any]
    params: type[BaseModel] | None = None
    atomic: bool = False

    def validated(self, payload: Mapping[str, Any]) -> Any:
        """The first argument of the function.

        Raises:
            pydantic.ValidationError: the payload does not fit the model.
        """
        return dict(payload) if self.params is None else self.params.model_validate(dict(payload))


_listeners: dict[str, dict[str, Listener]] = {}


def listener(
    topic: str, *, params: type[BaseModel] | None = None, name: str = "", atomic: bool = False
) -> Callable[[Function], Function]:
    """Register a function as a listener of a topic. A topic may have any number of listeners.

    Args:
        topic: printable ASCII without spaces, at most 100 characters.
        params: a pydantic model of the payload; by default, the function gets the payload as a dict.
        name: its name on the pages and as a step; by default `module.function`. It must not change while events wait.
        atomic: whether its writes to the default database and the fact that it has finished are committed together.

    Raises:
        RegistryError: the topic, the name, the model or the function cannot be used.
    """
    if problem := topic_problem(topic):
        raise RegistryError(problem)
    if params is not None and not (isinstance(params, type) and issubclass(params, BaseModel)):
        raise RegistryError(f"The params of a listener of {topic!r} must be a pydantic model class.")
    if params is not None and is_secret(params):
        raise RegistryError(
            f"The params of a listener of {topic!r} have a secret. An event keeps its payload readable."
        )

    def decorate(function: Function) -> Function:
        own = name or f"{function.__module__}.{function.__qualname__}"
        _check(topic, own, function)
        taken = _listeners.setdefault(topic, {}).get(own.lower())
        if taken is not None and _home(taken.call) != _home(function):
            raise RegistryError(f"Two listeners of {topic!r} are named {own!r}: give one of them a name.")
        _listeners[topic][own.lower()] = Listener(topic, own, function, params, atomic)
        return function

    return decorate


def listeners_of(topic: str) -> list[Listener]:
    """The listeners of a topic, by their names."""
    return [found for _name, found in sorted(_listeners.get(topic, {}).items())]


def all_listeners() -> Iterator[Listener]:
    """The listeners of all topics, by topic and name."""
    for topic in sorted(_listeners):
        yield from listeners_of(topic)


def _check(topic: str, name: str, function: Callable[..., Any]) -> None:
    try:
        check_name(name)
    except StepError as error:
        raise RegistryError(f"A listener of {topic!r} cannot be registered: {error}") from None
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise RegistryError(f"The listener {name!r} of {topic!r} must be an ordinary function.")
    try:
        inspect.signature(function).bind(object(), object())
    except TypeError:
        raise RegistryError(f"The listener {name!r} of {topic!r} must accept two arguments: (params, run).") from None


def _home(call: Callable[..., Any]) -> tuple[str, str]:
    return getattr(call, "__module__", "?"), getattr(call, "__qualname__", repr(call))
