"""Built-in handlers. A project can schedule them without writing code. The modules register them when imported."""

from scheduling.workers import event, http_request, reminder, run_command

__all__ = ["event", "http_request", "reminder", "run_command"]
