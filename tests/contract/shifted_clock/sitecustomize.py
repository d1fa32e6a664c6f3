"""Python imports this module at the start of a process, and it sets the clock of this process.

The clock is SHIFT_SECONDS ahead of the host's clock.
"""

import os
from datetime import UTC, datetime, timedelta

import time_machine

time_machine.travel(datetime.now(UTC) + timedelta(seconds=float(os.environ["SHIFT_SECONDS"]))).start()
