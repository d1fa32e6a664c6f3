"""Decides whether the error of a handler may be retried, by what the handler says about its errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Errors = type[BaseException] | Sequence[type[BaseException]]

RetryIf = Callable[[BaseException], bool | None]
"""Says of an error whether a retry can help: True, False, or None if it does not know the error."""

log = logging.getLogger("scheduling.run")


@dataclass(frozen=True)
class ErrorRules:
    """What a handler says about its errors. The first rule that knows an error decides.

    1. `retry_if`, for errors that carry a code.
    2. `give_up_on`: these classes are not retried.
    3. `retry_on`: these classes are retried. If any is named, no other error is.
    4. Any other error is retried.

    `RetryableError` and `NonRetryableError` decide before these rules.
    """

    retry_on: tuple[type[BaseException], ...] = ()
    give_up_on: tuple[type[BaseException], ...] = ()
    retry_if: RetryIf | None = None

    @classmethod
    def of(cls, retry_on: Errors = (), give_up_on: Errors = (), retry_if: RetryIf | None = None) -> ErrorRules:
        """Check what a decorator was given.

        Raises:
            ValueError: an argument is no class of exceptions, or `retry_if` cannot be called.
        """
        if retry_if is not None and not callable(retry_if):
            raise ValueError(f"retry_if is a function of the error, not {retry_if!r}.")
        return cls(_classes("retry_on", retry_on), _classes("give_up_on", give_up_on), retry_if)

    def may_retry(self, error: BaseException) -> bool:
        """Whether a retry can help against this error."""
        if self.retry_if is not None:
            try:
                said = self.retry_if(error)
            except Exception:
                log.exception("retry_if has failed, so the other rules decide about the retry")
                said = None
            if said is not None:
                return bool(said)
        if isinstance(error, self.give_up_on):
            return False
        return not self.retry_on or isinstance(error, self.retry_on)


RETRY_ALL = ErrorRules()
"""The rules of a handler that says nothing about its errors."""


def _classes(name: str, errors: Errors) -> tuple[type[BaseException], ...]:
    found = tuple(errors) if isinstance(errors, Iterable) and not isinstance(errors, str) else (errors,)
    for one in found:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise ValueError(f"{name} names classes of exceptions, not {one!r}.")
    return found
