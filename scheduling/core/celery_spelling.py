"""Other spellings of expressions, with the same local times, and with the other rule for clock changes.

If the minute or the hour begins with ``*``, a schedule follows real time; else it runs once for each local time (module
``cron``). So ``*/20 * * * *`` and ``0-59/20 0-23 * * *`` differ only when the clocks change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scheduling.core.dialect import MAX_LENGTH

_LAST = (59, 23)


def spellings(expressions: Sequence[str]) -> Iterator[list[str]]:
    """The same local times, written as fixed schedules; and, where the hour is a full list, as real-time schedules."""
    for change in (_fixed, _real):
        found = [" ".join(change(one.split())) for one in expressions]
        if found != list(expressions) and all(len(one) <= MAX_LENGTH for one in found):
            yield found


def _fixed(fields: list[str]) -> list[str]:
    return [
        f"0-{last}{text[1:]}" if text.startswith("*") else text for text, last in zip(fields[:2], _LAST, strict=True)
    ] + fields[2:]


def _real(fields: list[str]) -> list[str]:
    return [
        f"*{text.removeprefix(f'0-{last}')}" if text.startswith(f"0-{last}") and "," not in text else text
        for text, last in zip(fields[:2], _LAST, strict=True)
    ] + fields[2:]
