"""MySQL sorts rows with large params only if its sort buffer has room for one such row."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

SORT_BUFFER_BYTES = 64 * 2**20
"""The size of the largest packet that MySQL accepts by default. A larger row cannot be written in one statement."""


def enlarge_sort_buffer(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    """`connection_created` receiver that allows MySQL to sort rows of 64 MB. Other databases need no setting.

    By default, the buffer has 256 kB. With the params of one schedule larger than this, MySQL refuses each query that
    sorts the schedules (error 1038), for example the dashboard's. MySQL uses only as much memory as a sort needs.
    """
    if connection.vendor != "mysql" or connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SET SESSION sort_buffer_size = CAST(GREATEST(@@SESSION.sort_buffer_size, %s) AS UNSIGNED)",
            [SORT_BUFFER_BYTES],
        )
