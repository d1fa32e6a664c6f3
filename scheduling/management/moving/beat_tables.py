"""Reads the tables of django-celery-beat. Neither Celery nor that package is needed for it.

A table of an older release has fewer columns. What is missing has the value None. A row that the database driver cannot
read, for example a date that is none, spoils no other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.apps.registry import Apps
from django.db import connections, models
from django.utils.translation import gettext as _

from scheduling.operations.refused import Code, Refused
from scheduling.operations.shaping import each_usable

Values = dict[str, Any]

_TASKS = "django_celery_beat_periodictask"
_TEXTS = (
    "name", "task", "args", "kwargs", "queue", "exchange", "routing_key", "headers", "description",
)  # fmt: skip
_INSTANTS = ("expires", "start_time", "last_run_at", "date_changed")
_WHOLE = (
    "interval_id", "crontab_id", "solar_id", "clocked_id", "priority", "expire_seconds", "one_off", "enabled",
    "total_run_count",
)  # fmt: skip
KINDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "crontab": (
        "django_celery_beat_crontabschedule",
        ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"),
        (),
    ),
    "interval": ("django_celery_beat_intervalschedule", ("every", "period"), ()),
    "clocked": ("django_celery_beat_clockedschedule", (), ("clocked_time",)),
    "solar": ("django_celery_beat_solarschedule", ("event", "latitude", "longitude"), ()),
}
"""The kinds of schedules: the table, its texts and numbers, and its instants."""
_CHUNK = 500


class BeatTables:
    """The tables in one database.

    Args:
        alias: of `DATABASES`.

    Raises:
        Refused: NOT_FOUND; the database has no such tables.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        with connections[alias].cursor() as cursor:
            self._tables = set(connections[alias].introspection.table_names(cursor))
        if _TASKS not in self._tables:
            said = _("The database “%(alias)s” has no table %(table)s. Is django-celery-beat used with it?")
            raise Refused(Code.NOT_FOUND, said % {"alias": alias, "table": _TASKS})
        self._schedules: dict[str, dict[int, Values | str]] = {}

    def tasks(self) -> list[tuple[int, Values | str]]:
        """The tasks by their ids, in this order: the columns, or why the row cannot be read."""
        return list(self._read(_TASKS, (*_TEXTS, *_WHOLE), _INSTANTS).items())

    def schedule(self, kind: str, key: Any) -> Values | str | None:
        """The row of one of `KINDS`: the columns, or why it cannot be read; None if there is none."""
        if kind not in self._schedules:
            table, columns, instants = KINDS[kind]
            self._schedules[kind] = self._read(table, columns, instants) if table in self._tables else {}
        return self._schedules[kind].get(key)

    def _read(self, table: str, columns: Sequence[str], instants: Sequence[str]) -> dict[int, Values | str]:
        model = self._model(table, columns, instants)
        names = [one.attname for one in model._meta.concrete_fields if not one.primary_key]
        rows = model._default_manager.using(self._alias)
        found: dict[int, Values | str] = {}
        keys = list(rows.order_by("pk").values_list("pk", flat=True))

        def bulk(some: Sequence[int]) -> dict[int, Values]:
            return {row.pop("id"): row for row in rows.filter(pk__in=some).values("id", *names)}

        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            for pk, row in zip(chunk, self._each(chunk, bulk), strict=True):
                found[pk] = row if isinstance(row, str) else dict.fromkeys((*columns, *instants)) | row
        return found

    @staticmethod
    def _each(keys: Sequence[int], bulk: Any) -> list[Values | str]:
        indexed = {key: {"id": key, "row": None} for key in keys}

        def shaped(some: Sequence[int]) -> dict[int, Any]:
            return {key: {"id": key, "row": row} for key, row in bulk(some).items()}

        usable, unusable = each_usable(keys, shaped)
        indexed |= {one["id"]: one for one in usable}
        failed: dict[int, str] = {one.id: one.unusable for one in unusable}
        return [failed[key] if key in failed else cast(Values, indexed[key]["row"] or {}) for key in keys]

    def _model(self, table: str, columns: Sequence[str], instants: Sequence[str]) -> type[models.Model]:
        """A model of the columns that the table has, in a registry of its own, so that no migration sees it."""
        with connections[self._alias].cursor() as cursor:
            present = {one.name for one in connections[self._alias].introspection.get_table_description(cursor, table)}
        # Numbers are read as they are stored: plain SQL may have stored a text, and that is told for its row alone.
        fields: dict[str, models.Field[Any, Any]] = {name: models.TextField(null=True) for name in columns}
        fields |= {name: models.BooleanField(null=True) for name in ("one_off", "enabled") if name in columns}
        fields |= {name: models.DateTimeField(null=True) for name in instants}
        fields = {name: one for name, one in fields.items() if name in present}
        meta = type("Meta", (), {"managed": False, "db_table": table, "apps": Apps(), "app_label": "celery_beat"})
        body = {"__module__": __name__, "id": models.BigAutoField(primary_key=True), "Meta": meta, **fields}
        return cast(type[models.Model], type("BeatRow", (models.Model,), body))
