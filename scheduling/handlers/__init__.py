"""The public interface for projects that write handlers: the decorator, the retry policy, the errors and the `Run`."""

from scheduling.core.attachments import AttachmentError
from scheduling.core.breaker import CircuitBreaker
from scheduling.core.outcome import NonRetryableError, RetryableError, SoftTimeLimit
from scheduling.core.retry import RetryPolicy
from scheduling.core.run_limit import Limit
from scheduling.core.snooze import Snooze
from scheduling.core.steps import StepError
from scheduling.handlers.batch_run import BatchRun
from scheduling.handlers.listeners import listener
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
    "AttachmentError",
    "BatchRun",
    "CircuitBreaker",
    "Handler",
    "Limit",
    "NoParams",
    "NonRetryableError",
    "RegistryError",
    "RetryPolicy",
    "RetryableError",
    "Run",
    "Snooze",
    "SoftTimeLimit",
    "StepError",
    "UnknownHandler",
    "find",
    "handlers",
    "listener",
    "register",
    "worker",
]
