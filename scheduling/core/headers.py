"""The headers of a run: texts that accompany it, such as the id of a trace. They come from code or from a message."""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.core.json_bounds import is_storable

MOST_HEADERS = 20
LONGEST_HEADERS = 2_048
"""The greatest size of all names and values of a run together, in bytes of UTF-8."""

BROKERS_OWN = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count")
"""What the headers begin with that the broker itself writes."""

_OURS = ("x-retry-count", "x-deduplication-header", "x-last-error", "x-first-failure-timestamp", "x-failed-at")


def checked_headers(headers: object) -> dict[str, str]:
    """The headers that code gives to a run.

    Raises:
        ValueError: they are no mapping of texts to texts, too many or too long, or no database stores them.
    """
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers= is a mapping of texts to texts, not {headers!r:.100}.")
    if len(headers) > MOST_HEADERS:
        raise ValueError(f"headers= has {len(headers):,} entries; at most {MOST_HEADERS} are allowed.")
    for name, value in headers.items():
        if not (_is_text(name) and name and _is_text(value)):
            raise ValueError(
                f"headers= maps a name to a text without NUL characters, not {name!r:.100} to {value!r:.100}."
            )
    if (size := sum(_size(name, value) for name, value in headers.items())) > LONGEST_HEADERS:
        raise ValueError(f"headers= has {size:,} bytes; at most {LONGEST_HEADERS:,} are allowed.")
    return dict(headers)


def usable(headers: object) -> dict[str, str]:
    """The headers that a run can have, of a value that may be anything. What does not fit is left out."""
    found: dict[str, str] = {}
    size = 0
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if len(found) == MOST_HEADERS:
            break
        if _is_text(name) and name and _is_text(value) and size + _size(name, value) <= LONGEST_HEADERS:
            found[name] = value
            size += _size(name, value)
    return found


def of_application(headers: object) -> dict[str, str]:
    """The headers of a message from outside that the run gets: texts that the application has written."""
    found = headers.items() if isinstance(headers, Mapping) else ()
    return usable(
        {name: value for name, value in found if isinstance(name, str) and not name.startswith((*BROKERS_OWN, *_OURS))}
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_HEADERS and is_storable(value)


def _size(name: str, value: str) -> int:
    return len(name.encode()) + len(value.encode())
