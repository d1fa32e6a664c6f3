"""The same names as `scheduling.handlers`, for projects that import `scheduling.registry`."""

from scheduling.handlers import *  # noqa: F403
