"""Configures logging in the processes that our commands start."""

from __future__ import annotations

from scheduling import logs
from scheduling.conf import log_options, own_logging


def configure_logging() -> None:
    """Send all log lines to standard error, if the project leaves logging to us (`LOGGING_CONFIG` is None).

    In all other projects, LOGGING stays as it is. Only if it has no handler for our lines, they get one.

    Raises:
        ValueError: for an unknown format or level.
    """
    format_, level = log_options()
    (logs.configure if own_logging() else logs.configure_unheard)(format_, level)
