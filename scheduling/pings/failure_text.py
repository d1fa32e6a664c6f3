"""What a monitor is told about a failed run: its error, and the last lines that it printed.

Output and errors are stored with their secret params masked, and are sent as pages show them.
"""

from __future__ import annotations

from scheduling.core.pings import BODY_BYTES, last_lines
from scheduling.core.text import visible_text
from scheduling.models import Output, Ping

ERROR_CHARACTERS = 2_000


def failure_text(ping: Ping) -> str:
    """The body of a failure: at most `BODY_BYTES` bytes in UTF-8."""
    row = ping.execution
    error = f"{row.error_class}: {row.error_message}" if row.error_class else ""
    facts = [f"{row.target_name} {row.execution_key}, attempt {ping.attempt}", error, row.reason]
    head = "\n".join(visible_text(fact, ERROR_CHARACTERS) for fact in facts if fact)
    room = BODY_BYTES - len(head.encode()) - 2
    lines = last_lines(visible_text(_end_of_output(ping, room)).rstrip(), room) if room > 0 else ""
    return last_lines(f"{head}\n\n{lines}" if lines else head)


def _end_of_output(ping: Ping, room: int) -> str:
    chunks: list[str] = []
    stored = Output.objects.filter(execution=ping.execution_id, attempt=ping.attempt).order_by("-sequence")
    for text in stored.values_list("text", flat=True).iterator(chunk_size=10):
        chunks.append(text[-room:])
        if sum(map(len, chunks)) >= room:
            break
    return "".join(reversed(chunks))
