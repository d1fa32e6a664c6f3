"""The rules about the steps of a handler: their names, their limits, and the errors that end an attempt."""

from __future__ import annotations

from scheduling.core.outcome import NonRetryableError

LONGEST_NAME = 100
"""The greatest length of the name of a step or a cursor, in characters."""

MOST_STEPS = 1_000
"""So many steps may one execution finish. Work on many items belongs into `run.each`, which keeps one cursor."""

SLOW_SECONDS = 5.0
"""With SQLite, a step that holds the write lock for longer than this is worth a warning."""


class StepError(NonRetryableError):
    """The handler uses its steps wrongly. A retry would fail in the same way."""


class FencedOff(BaseException):
    """This attempt no longer owns its execution. Nothing of its present transaction was stored.

    The class is no `Exception`, so that an `except Exception` of the handler does not go on with the work of another
    attempt.
    """


class HandedBack(BaseException):
    """The consumer stops, and this attempt ends after its last checkpoint. Another consumer goes on from there.

    The class is no `Exception`, so that an `except Exception` of the handler does not take it for a failure.
    """


def check_name(name: object) -> str:
    """The name in lower case, as it is compared and stored.

    Names have printable ASCII characters only: some databases compare texts without case and accents, so that other
    names could be equal on one database and different on another one.

    Raises:
        StepError: the name is refused.
    """
    if not isinstance(name, str) or not name.isascii() or not name.isprintable() or name.strip() != name or not name:
        raise StepError(f"The name of a step is a text of printable ASCII characters, not {name!r:.120}.")
    if len(name) > LONGEST_NAME:
        raise StepError(f"The name of a step has at most {LONGEST_NAME} characters: {name!r:.120}.")
    return name.lower()
