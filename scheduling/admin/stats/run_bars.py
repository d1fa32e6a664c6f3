"""The last runs of a schedule as bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui import svg
from scheduling.admin.ui.durations import took_words
from scheduling.admin.ui.times import format_due
from scheduling.core.lifecycle import State
from scheduling.models.labels import STATES
from scheduling.models.last_runs import FAILURES, RUNS, Ran

WIDTH, STEP, HEIGHT = 6, 8, 26


LINKED = FAILURES | {State.CANCELLED.value, State.RETRYING.value, State.SKIPPED.value}
"""Only bars of runs in these states are links. In the table of schedules, the last result is a link in every state."""


def bars(runs: Sequence[Ran], viewer: Viewer, zone: tzinfo | None = None) -> SafeString:
    """The runs as bars, the oldest first.

    A bar's height shows the duration, and its colour shows the state. A dashed bar is a skipped occurrence.

    Args:
        zone: the zone of the schedule, in which the bars give their times. Without it, they give the viewer's time.
    """
    heights = svg.bars([run.seconds or 0.0 for run in runs], HEIGHT)
    # The newest bar is always at the right edge, so that users can compare the bars of two rows of a table.
    left = (RUNS - len(runs)) * STEP
    shapes = []
    for number, (run, height) in enumerate(zip(runs, heights, strict=True)):
        skipped = run.state == State.SKIPPED.value
        tall = HEIGHT if skipped else height
        words = _said(run, zone)
        bar = svg.rect(
            left + number * STEP + 0.5,
            round(HEIGHT - tall + 0.5, 1),
            WIDTH - 1 if skipped else WIDTH,
            tall - (1 if skipped else 0),
            # The bar of a successful run has no CSS class. Most runs succeed, so a page of 1,500 bars becomes smaller.
            f"dash-is-{run.state}" if run.state in STATES and run.state != State.SUCCEEDED.value else None,
            "" if run.state in LINKED else words,
        )
        linked = run.state in LINKED
        shapes.append(svg.link(viewer.execution(run.pk), words, bar, skipped=True) if linked else bar)
    tally = Counter(run.state for run in runs)
    label = ", ".join(f"{number} {STATES[state]}" for state, number in tally.items() if state in STATES)
    return svg.picture(
        RUNS * STEP,
        HEIGHT + 1,
        _label(len(runs), label),
        shapes,
        css="dash-bars",
        linked=any(run.state in LINKED for run in runs),
    )


def _label(count: int, states: str) -> str:
    if not count:
        return _("No runs yet")
    text = ngettext("Last run: %(states)s", "Last %(count)d runs: %(states)s", count)
    return text % {"count": count, "states": states}


def _said(run: Ran, zone: tzinfo | None) -> str:
    word = STATES.get(run.state, run.state)
    at = format_due(run.scheduled_at, zone)
    if run.state == State.SKIPPED.value:
        return f"{at}: {word}" + (f" ({run.missed})" if run.missed > 1 else "")
    if run.seconds is None:
        return f"{at}: {word}"
    return f"{at}: {word}, {took_words(run.state, run.started_at, run.ended_at, run.finished_at)}"
