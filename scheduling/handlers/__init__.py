"""The public interface for projects that write handlers: the decorator, the retry policy, the errors and the `Run`."""

from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.retry import RetryPolicy
from scheduling.handlers.registry import (
    Handler,
    NoParams,
    RegistryError,
    UnknownHandler,
    find,
    handlers,
    register,
    worker,
)
from scheduling.handlers.run import Run

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
