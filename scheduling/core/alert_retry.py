"""When a message of alerts is tried again, and when it is given up."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduling.core.retry_after import LONGEST_WAIT

FIRST_SECONDS = 10
LONGEST_SECONDS = 900
"""The longest wait that this software chooses itself."""

MOST_WAIT_SECONDS = max(LONGEST_SECONDS, LONGEST_WAIT)
"""No message waits longer than this for its next try. A server may ask for a longer wait than LONGEST_SECONDS."""

GIVEN_UP_AFTER = timedelta(hours=24)
"""So long a message is tried. What has piled up since is told by the next one."""

MOST_TRIES = 200
"""So often a message is tried at most, whatever its times say. A day has about a hundred tries."""

MOST_REPEATS = 1
"""A message whose try has ended without an answer is sent once more at most: the receiver may have each of them."""

SENDING_SECONDS = 90
"""A try that has not ended after so long was lost with its process."""


def next_try(
    tries: int, created_at: datetime, now: datetime, retry_after: float | None = None, repeats: int = 0
) -> datetime | None:
    """When a message is tried again that was not sent; None if it is given up.

    Args:
        tries: how many tries it has had, at least 1.
        retry_after: how many seconds the server wants us to wait, if it has said so. More than LONGEST_WAIT counts as
            LONGEST_WAIT.
        repeats: how many of the tries ended without an answer.
    """
    if now - created_at >= GIVEN_UP_AFTER or tries >= MOST_TRIES or repeats > MOST_REPEATS:
        return None
    wait = min(FIRST_SECONDS * 2.0 ** min(tries - 1, 20), LONGEST_SECONDS)
    return now + timedelta(seconds=max(wait, min(retry_after or 0.0, LONGEST_WAIT)))
