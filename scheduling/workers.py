"""The built-in workers, registered as those of any app are."""

from __future__ import annotations

from scheduling.builtins import CommandParams, run_command
from scheduling.registry import worker

# A fresh child: a command may set up logging, signals and globals as if it owned the process.
worker("run_command", params=CommandParams, fresh=True, title="Management command")(run_command)
