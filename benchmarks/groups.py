"""Measures what the groups of users cost: `python -m benchmarks.pages --groups 200 [--database URL]`.

The same pages are requested by a superuser and by members, in three distributions of the rows:

- none: no row has a group. The member's pages should cost what the superuser's cost.
- few: one row of a hundred has a group.
- all: the rows are shared evenly among all groups.

One member is in one group, and another is in a group that has no row. The table shows the median of the superuser in
milliseconds, and the others as multiples of it. A multiple above two is marked, unless the page takes less than 50 ms.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

MOST_TIMES, UNMARKED_MS = 2.0, 50.0
BATCH = 20_000

MEMBERS = ("member", "member of an empty group")


def measure(options: argparse.Namespace) -> int:
    """Measure each distribution. Returns how many pages cost a member too much."""
    from django.contrib.auth.models import Group

    from benchmarks.pages import fill

    fill(options.executions)
    Group.objects.bulk_create([Group(name=f"team {number}") for number in range(options.groups)], ignore_conflicts=True)
    teams = list(Group.objects.filter(name__startswith="team ").order_by("pk").values_list("pk", flat=True))
    clients = {"superuser": _superuser(), **_members(teams[0])}
    slow = 0
    for title, share in (("none", 0.0), ("few", 0.01), ("all", 1.0)):
        _share_out(teams, share)
        slow += sum(_line(title, page, clients, options.repeat) for page in _pages(teams[0] if share else None))
    print(f"{slow} pages cost a member more than {MOST_TIMES:g} times")
    return slow


def _superuser() -> Any:
    from django.contrib.auth.models import User

    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    return _logged_in(user)


def _members(team: int) -> dict[str, Any]:
    from django.contrib.auth.models import Group, User

    from scheduling.management.groups import EDITOR, make_groups

    list(make_groups())
    empty, _ = Group.objects.get_or_create(name="empty team")
    found = {}
    for name, group in zip(MEMBERS, (team, empty.pk), strict=True):
        user, _ = User.objects.get_or_create(username=name.replace(" ", "-"), is_staff=True)
        user.groups.set([group, Group.objects.get(name=EDITOR).pk])
        found[name] = _logged_in(user)
    return found


def _logged_in(user: Any) -> Any:
    from django.test import Client

    client = Client()
    client.force_login(user)
    return client


def _share_out(teams: Sequence[int], share: float) -> None:
    """Give groups to a share of the schedules, and their groups to the executions. Then the statistics are renewed."""
    from django.db import connection

    from scheduling.models import Scheduler, SchedulerExecution

    schedules = list(
        Scheduler.objects.filter(description__startswith="season ").order_by("pk").values_list("pk", flat=True)
    )
    chosen = schedules[: round(len(schedules) * share)]
    Scheduler.objects.update(group=None)
    for number, team in enumerate(teams):
        Scheduler.objects.filter(pk__in=chosen[number :: len(teams)]).update(group=team)
    table, parent = SchedulerExecution._meta.db_table, Scheduler._meta.db_table
    of_schedule = f"(SELECT group_id FROM {parent} WHERE {parent}.id = {table}.scheduler_id)"
    first = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True).first() or 0
    last = SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    with connection.cursor() as cursor:
        for start in range(first, last + 1, BATCH):
            cursor.execute(
                f"UPDATE {table} SET group_id = {of_schedule} WHERE id >= %s AND id < %s",
                [start, start + BATCH],
            )
        statements = {"mysql": f"ANALYZE TABLE {table}", "postgresql": f"VACUUM ANALYZE {table}"}
        cursor.execute(statements.get(connection.vendor, "ANALYZE"))


def _pages(team: int | None) -> Iterator[tuple[str, str]]:
    """The pages without an execution or a schedule of their own, and those of rows that the member sees."""
    from benchmarks.pages import A, pages
    from scheduling.models import Scheduler, SchedulerExecution

    for title, address in pages():
        if not any(part.isdigit() for part in address.partition("?")[0].split("/")) and "scheduler=" not in address:
            yield title, address
    schedule = Scheduler.objects.filter(group=team, description__startswith="season ").order_by("-pk").first()
    run = SchedulerExecution.objects.filter(group=team, state="failed").order_by("-pk").first()
    yield "an own schedule", f"{A}/scheduler/{schedule.pk if schedule else 0}/change/"
    yield "executions of an own schedule", f"{A}/schedulerexecution/?scheduler={schedule.pk if schedule else 0}"
    yield "an own failed execution", f"{A}/schedulerexecution/{run.pk if run else 0}/change/"
    yield "replays", f"{A}/replay/"
    yield "artefacts", f"{A}/artefact/"


def _line(title: str, page: tuple[str, str], clients: dict[str, Any], repeat: int) -> bool:
    """Print a line, and return whether the page costs a member too much."""
    from benchmarks.pages import queries

    name, address = page
    times: dict[str, list[float]] = {who: [] for who in clients}
    numbers = {who: queries(client, address) for who, client in clients.items() if _is_shown(client, address)}
    for _round in range(repeat):
        for who in numbers:
            times[who].append(_ask(clients[who], address))
    base = statistics.median(times["superuser"])
    found, marked = [], False
    for who in MEMBERS:
        if not times[who]:
            found.append(f"{'-':>16}")
            continue
        middle = statistics.median(times[who])
        too_much = middle > base * MOST_TIMES and middle > UNMARKED_MS
        marked = marked or too_much
        found.append(f"{middle / base:6.2f} ({middle:4.0f} ms){'!' if too_much else ' '}")
    print(
        f"{title:5} {name:45} {numbers['superuser']:3} {numbers.get(MEMBERS[0], 0):3} {base:6.0f} {' '.join(found)}",
        flush=True,
    )
    return marked


def _is_shown(client: Any, address: str) -> bool:
    return bool(client.get(address).status_code == 200)


def _ask(client: Any, address: str) -> float:
    from benchmarks.pages import ask
    from scheduling.admin.dashboard import heatmap

    heatmap.forget()
    return ask(client, address)
