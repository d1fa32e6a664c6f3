"""Reads the schedules that a file is compared with. A row that cannot be read spoils no other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from scheduling.core.schedule_files import nameless, nameless_key
from scheduling.models import Scheduler
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.shaping import each_usable

CHUNK = 500

Item = TypeVar("Item")


class FileRows:
    """The schedules that a file names or owns, as far as the actor sees them.

    Args:
        names: the names in the file.

    Raises:
        Refused: FORBIDDEN.
    """

    def __init__(self, actor: Actor, source: str, names: Sequence[str]) -> None:
        self._seen = schedules.seen(actor)
        self._unusable: dict[int, str] = {}
        self._keys: dict[str, int] = {}
        keys = {key: name for name in names if (key := nameless_key(name)) is not None}
        for some in _chunks(sorted(keys)):
            free = self._seen.filter(pk__in=some, name__isnull=True).values_list("pk", flat=True)
            self._keys |= {keys[key]: key for key in free}
        for chunk in _chunks(names):
            found = self._seen.filter(name__in=chunk).values_list("name", "pk")
            self._keys |= {
                name: key for name, key in found if name is not None and name in chunk
            }  # MariaDB ignores case
        owned = self._seen.filter(source_file=source).order_by("pk").values_list("pk", "name", "source_file")
        self.owned = {key: name or nameless(key) for key, name, file in owned if file == source}
        """The names of the rows that the file owns, by primary key."""
        self._rows = {row.pk: row for row in self.load(self._keys.values())}

    def key(self, name: str) -> int:
        """The primary key of the row that `find` looks for; 0 if there is no such row."""
        return self._keys.get(name, 0)

    def find(self, name: str) -> Scheduler | None:
        """The row with this name; for `schedule-<id>` also the row with this id, if it has no name."""
        return self._rows.get(self.key(name))

    def unusable(self, key: int) -> str:
        """Why a row that was loaded cannot be read; empty if it can, or if there is no such row."""
        return self._unusable.get(key, "")

    def load(self, keys: Iterable[int]) -> Iterator[Scheduler]:
        """The rows with these keys, with targets and owners, in the order of the keys. Unusable rows are left out."""
        for chunk in _chunks(list(keys)):
            found, unusable = each_usable(chunk, self._bulk)
            yield from found
            self._unusable |= {row.id: row.unusable for row in unusable}

    def _bulk(self, keys: Sequence[int]) -> dict[int, Scheduler]:
        return schedules.with_related(self._seen).in_bulk(keys)


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
