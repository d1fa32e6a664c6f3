"""The operators' pages. Importing this package registers them, which is what Django's autodiscovery does."""

from scheduling.admin import dashboard, executions, failed, processes, reminders, replays, schedulers, workers

__all__ = ["dashboard", "executions", "failed", "processes", "reminders", "replays", "schedulers", "workers"]
