"""Views of an execution's output: the download, and the JSON for an open page that follows a run."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone as clock

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.executions import page as execution_page
from scheduling.admin.executions.output import after
from scheduling.admin.ui.media import MEDIA, page_media
from scheduling.admin.ui.text import is_number
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.models import SchedulerExecution
from scheduling.models.labels import STATES
from scheduling.models.visibility import visibility_of
from scheduling.operations.output import Cursor, download
from scheduling.operations.output_filter import Wanted

PAGE_MEDIA = MEDIA + page_media(sheets=("execution",), scripts=("swap", "follow"))
"""The style sheet and the scripts of an execution's page."""

STATE_SECONDS = 5
"""The state part of the page (`state.html`) is sent again after this many seconds, even if the row has not changed.

The state part shows relative times, such as "5 min ago". These times change even if the row does not change.
"""

_COLUMNS = ("state", "attempt", "progress", "pid", "published_at", "cancel_requested_by", "reason")


def version_of(row: dict[str, Any], now: datetime) -> str:
    """A hash of the values that the state part of the page shows. An open page with another hash is out of date."""
    beat = int(now.timestamp()) // STATE_SECONDS if row["state"] in OPEN_STATES else 0
    return hashlib.sha1(repr((beat, *row.values())).encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]


def following(row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """The first values of `version` and `said` for the page's script."""
    version = version_of({name: getattr(row, name) for name in _COLUMNS}, now)
    return {"version": version, "said": row.get_state_display()}


class ExecutionOutput(Pages):
    """Adds two views to the executions' admin: the download, and the JSON for an open page that follows a run."""

    # The view `follow` gets the row's key and not the row, because it must read the state before the output.
    pages: tuple[Page, ...] = (Page("output"), Page("follow", "view", "<path:key>/follow/", READ))

    def output_view(self, request: HttpRequest, row: SchedulerExecution) -> StreamingHttpResponse:
        """Sends all stored output as a plain-text download, so that no browser renders the output as HTML."""
        attempt = Wanted.of(request.GET).attempt
        name = f"execution-{row.pk}.txt" if attempt is None else f"execution-{row.pk}-{attempt}.txt"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
        return StreamingHttpResponse(
            download(row.pk, attempt), content_type="text/plain; charset=utf-8", headers=headers
        )

    def follow_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Sends the output after the cursor `after`, and the state part of the page if `version` is out of date.

        The JSON has these keys:

        - `groups`: pairs of an attempt's number and its lines as HTML
        - `cursor`: the cursor after the last line
        - `more`: whether the client should ask again at once
        - `over`: whether the execution has ended
        - `version`: the present version of the state part
        - `attempts`: the number of attempts
        - `said`: the state's label
        - `state`: the two parts that show the state, as HTML, above and below the output; null if the client's version
          is not out of date
        """
        now = clock.now()
        rows = visibility_of(request.user).executions().filter(pk=int(key) if is_number(key) else -1)
        # Read the state before the output. The last lines of a run are committed together with its end. So if the
        # state says that the run has ended, the output that is read after the state is complete.
        found = rows.values(*_COLUMNS).first()
        if found is None:
            return JsonResponse({"gone": True}, status=404)
        version = version_of(found, now)
        lines = after(int(key), Cursor.of(request.GET.get("after", "")), Wanted.of(request.GET))
        return JsonResponse(
            {
                "groups": lines.groups,
                "cursor": str(lines.cursor),
                "more": lines.cut,
                "over": found["state"] not in OPEN_STATES,
                "version": version,
                "attempts": found["attempt"],
                "said": str(STATES.get(found["state"], found["state"])),
                "state": None if request.GET.get("version") == version else self._state_html(request, key, now),
            },
            headers={"Cache-Control": "no-store"},
        )

    def _state_html(self, request: HttpRequest, key: str, now: datetime) -> list[str] | None:
        row = self.get_object(request, key)
        if row is None:
            return None
        context = {"opts": self.opts, **execution_page.state_context(request, row, now)}
        folder = "admin/scheduling/schedulerexecution"
        return [render_to_string(f"{folder}/{part}.html", context, request) for part in ("state", "rest")]
