"""The panel of a schedule's next runs.

The panel shows the schedule in words, its frequency, warnings, its next runs and the clock changes of the next year.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone as clock
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.schedulers.panels import refused, table
from scheduling.admin.schedulers.timing_words import timing_words
from scheduling.admin.ui.badges import icon
from scheduling.admin.ui.schedules import in_words
from scheduling.admin.ui.times import format_instant, relative_time
from scheduling.core.clockchanges import ClockChange, Effect, changes_met, effect_on, moves_local_times
from scheduling.core.cron import CronError, Timetable, ZoneError, count_between, zone
from scheduling.core.days import EVERY_DAY
from scheduling.core.dialect import Cron
from scheduling.core.expected import Expected, Fate
from scheduling.core.intervals import DayInterval, RealInterval
from scheduling.core.known_sentences import for_reader
from scheduling.core.why_at import is_due
from scheduling.execution.rule_pauses import runs_left
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.operations.next_runs import FEW, next_expected, next_runs

NOTHING, MINUTE, DAY, YEAR = timedelta(0), timedelta(minutes=1), timedelta(days=1), timedelta(days=365)
MOST_CHANGES = 4
"""The maximum number of clock changes in the panel. Most zones have at most two a year; some have four."""

Note = tuple[str, str]
"""A tone, which is `warn` or empty, and a sentence. The style sheet has a colour for the tone."""


def next_runs_panel(scheduler: Scheduler, now: datetime | None = None, notes: Sequence[Note] = ()) -> SafeString:
    """The panel as HTML. Each run has its time in the schedule's zone, in the viewer's zone and relative to now.

    The times in the viewer's zone are in UTC until a script converts them.

    Args:
        notes: notes that the panel shows before its own notes.
    """
    if not scheduler.schedule and scheduler.date_time is None:
        return _nothing_yet()
    now = now or clock.now()
    try:
        words, runs = in_words(scheduler), next_runs(scheduler, now=now)
        rules = next_expected(scheduler, now=now) if has_own_timing(scheduler) else None
        info = zone(scheduler.zone_name)
        times = timetable_of(scheduler.schedule) if scheduler.date_time is None else None
        often = how_often(times, info.key, now) if times is not None else ""
        said = [*notes, *_warnings(scheduler, times, bool(runs), now)]
        if times is not None and moves_local_times(times, info.key, now, now + YEAR):
            said.append(("", _("It is counted in real time, so its local times change when the clocks do.")))
        changes = changes_met(times, info.key, now, now + YEAR) if times is not None else []
        rows = [_row(run, times, info, now) for run in runs]
        if rules is not None:
            rows = [_row_by_rules(one, times, info, now) for one in rules]
    except (CronError, ZoneError) as error:
        return refused(error)
    if runs:
        when, how_long = format_instant(runs[0], info), relative_time(runs[0], now)
        first = _("Next run: %(when)s, %(how_long)s.") % {"when": when, "how_long": how_long}
    else:
        first = ""
    return format_html(
        '<div class="sch-panel" data-live-said="{}"><p class="sch-words" lang="en">{}</p>{}{}{}{}</div>',
        " ".join([f"{words}.", *(text for _tone, text in said), first]).strip(),
        words,
        format_html("<p>{}</p>", often) if often else "",
        format_html_join("", '<p class="sch-note{}">{} {}</p>', (_noted(note) for note in said)),
        table(_("Next runs"), _head(info), _ROW, rows) if rows else "",
        _clock_notes(changes),
    )


_ROW = (
    '<tr><td>{} {}{}</td><td class="sch-viewer"><time class="sch-time" datetime="{}" data-viewer>{}</time></td>'
    '<td class="sch-from-now">{}</td></tr>'
)


def _head(info: ZoneInfo) -> list[object]:
    # A script replaces the text `UTC` with the name of the viewer's zone. It hides the column of an equal zone.
    viewers = format_html('<span data-viewer-zone="{}" data-zone="{}">UTC</span>', _("Your time: %(zone)s"), info.key)
    return [_("In %(zone)s") % {"zone": info.key}, viewers, _("From now")]


def _row(run: datetime, times: Timetable | None, info: ZoneInfo, now: datetime) -> Sequence[object]:
    noted = effect_on(times, info.key, run) if times is not None else None
    return (
        date_format(run.astimezone(info), "D"),
        format_instant(run, info),
        format_html('<span class="sch-below sch-clock">{}</span>', _said_of_run(*noted)) if noted else "",
        f"{run.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        f"{run:%Y-%m-%d %H:%M:%S}",
        relative_time(run, now),
    )


def _row_by_rules(one: Expected, times: Timetable | None, info: ZoneInfo, now: datetime) -> Sequence[object]:
    """An occurrence of a schedule that is spread, bounded or has a calendar: its nominal time, and when it starts."""
    shown = one.last if one.fate is Fate.HELD and one.last is not None and one.starts_at is not None else one.first
    # An edit may have kept an occurrence of the former times, which the present ones do not name.
    named = times is not None and one.fate is Fate.RUNS and is_due(times, info.key, shown)
    noted = effect_on(times, info.key, shown) if times is not None and named else None
    lines = [(_said_of_run(*noted),)] if noted else []
    if one.starts_at is None:
        lines.append((_said_of_excluded(one, info),))
        viewer = from_now = ""
    else:
        if one.fate is Fate.HELD:
            lines.append((_("held: %(why)s") % {"why": for_reader(one.why, 200)},))
        if one.starts_at != shown:
            local = one.starts_at.astimezone(info)
            day = "" if local.date() == shown.astimezone(info).date() else f"{local:%Y-%m-%d} "
            lines.append((_("starts at %(time)s") % {"time": f"{day}{local:%H:%M:%S}"},))
        viewer, from_now = f"{one.starts_at:%Y-%m-%d %H:%M:%S}", relative_time(one.starts_at, now)
    return (
        date_format(shown.astimezone(info), "D"),
        format_instant(shown, info),
        format_html_join("", '<span class="sch-below sch-clock">{}</span>', lines),
        f"{one.starts_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if one.starts_at is not None else "",
        viewer,
        from_now,
    )


def _said_of_excluded(one: Expected, info: ZoneInfo) -> str:
    facts = {"why": for_reader(one.why, 200), "count": _number(one.count)}
    if one.fate is Fate.HELD:
        if one.last is None:
            return _("held for ever: %(why)s") % facts
        return _("held, and gives way to the run at the end: %(why)s") % facts
    if one.last is None:
        return _("does not run, nor any after it: %(why)s") % facts
    if one.count > 1:
        last = {"last": format_instant(one.last, info)}
        return _("%(count)s do not run, up to %(last)s: %(why)s") % (facts | last)
    return _("does not run: %(why)s") % facts


def clock_words(scheduler: Scheduler, run: datetime) -> str:
    """What a clock change does to a run of the schedule that starts then; empty if it does nothing.

    A run that is spread or held starts at an instant that the times do not name, so the clocks have not moved it.
    """
    if scheduler.date_time is not None or not scheduler.schedule or scheduler.spread_seconds:
        return ""
    times = timetable_of(scheduler.schedule)
    noted = effect_on(times, scheduler.zone_name, run) if is_due(times, scheduler.zone_name, run) else None
    return _said_of_run(*noted) if noted else ""


def _said_of_run(effect: Effect, number: int) -> str:
    if effect is Effect.MOVED:
        return _("right after the hour that the clocks skip")
    if effect is Effect.ONCE:
        return _("the first time that the clocks show it, and only then")
    return _("the first time that the clocks show it") if number == 1 else _("the second time that the clocks show it")


def how_often(times: Timetable, tz: str, now: datetime) -> str:
    """How often a schedule runs, in words.

    Examples: `288 runs a day.` and `1 run on each day that matches the schedule, 261 in the next 365 days.`
    """
    if isinstance(times, RealInterval) and DAY % times.step == NOTHING:
        return _runs_a_day(DAY // times.step)
    if isinstance(times, DayInterval) and times.days == 1:
        return _runs_a_day(1)
    if isinstance(times, Cron) and times.calendar == EVERY_DAY:
        return _runs_a_day(len(times.hours) * len(times.minutes))
    yearly = count_between(times, tz, now, now + YEAR)
    if not isinstance(times, Cron):
        text = ngettext("%(count)s run in the next 365 days.", "%(count)s runs in the next 365 days.", yearly)
        return text % {"count": _number(yearly)}
    daily = len(times.hours) * len(times.minutes)
    text = ngettext(
        "%(count)s run on each day that matches the schedule, %(yearly)s in the next 365 days.",
        "%(count)s runs on each day that matches the schedule, %(yearly)s in the next 365 days.",
        daily,
    )
    return text % {"count": _number(daily), "yearly": _number(yearly)}


def _runs_a_day(count: int) -> str:
    return ngettext("%(count)s run a day.", "%(count)s runs a day.", count) % {"count": _number(count)}


def _number(value: int) -> str:
    return number_format(value, force_grouping=True)


def _warnings(scheduler: Scheduler, times: Timetable | None, any_runs: bool, now: datetime) -> Iterator[Note]:
    if scheduler.stay_alive:
        yield "", _("It is a service: these times start it if it does not run.")
    elif times is not None:
        yield from _too_often(times)
    yield from _rules_notes(scheduler, now)
    if not any_runs:
        # Its operator has wanted the end, so it is no warning.
        yield "" if _is_over(scheduler, now) else "warn", _("It has no run to come.")
    elif not scheduler.status:
        yield "", _("It is paused: these would be its next runs.")


def _too_often(times: Timetable) -> Iterator[Note]:
    if isinstance(times, RealInterval):
        if times.step <= MINUTE:
            yield "warn", _("It runs at least once in each minute. For minutes, write m after the number, for hours h.")
    elif len(times.minutes) == 60:
        if len(times.hours) == 24:
            yield "warn", _("It runs each minute. If that is not meant, give the minute a number instead of *.")
        else:
            yield "warn", _("It runs each minute of the hours named. For once an hour, write 0 for the minute.")


def _is_over(scheduler: Scheduler, now: datetime) -> bool:
    """Whether the schedule has ended as its operator wanted it; see `models.plan.has_ended`."""
    until = scheduler.active_until
    return until is not None and (until <= now or scheduler.calendar_id is None)


def _rules_notes(scheduler: Scheduler, now: datetime) -> Iterator[Note]:
    """What the rules of the schedule mean, in words."""
    yield from (("", said) for _name, said in timing_words(scheduler, now))
    if (left := runs_left(scheduler)) is not None and left <= FEW:
        text = ngettext("It is paused after its next run.", "It is paused after its next %(count)d runs.", left)
        yield "", text % {"count": left}
    if scheduler.spread_seconds and scheduler.pk is None:
        yield "", _("Its offset is chosen when it is saved. The times below are without it.")


def _noted(note: Note) -> tuple[object, ...]:
    tone, text = note
    return (f" sch-note-{tone}", icon("warn"), text) if tone else ("", "", text)


def _clock_notes(changes: Sequence[ClockChange]) -> SafeString | str:
    if not changes:
        return ""
    lines = ((_clock_note(change),) for change in changes[:MOST_CHANGES])
    return format_html(
        '<p class="sch-clock-head">{}</p><ul class="sch-clock-notes">{}</ul>',
        _("Where the clocks change in the next year:"),
        format_html_join("", "<li>{}</li>", lines),
    )


def _clock_note(change: ClockChange) -> str:
    facts = {
        "day": date_format(change.start, "D") + f" {change.start:%Y-%m-%d}",
        "start": f"{change.start:%H:%M}",
        "end": f"{change.end:%H:%M}",
    }
    what = (
        _("%(day)s: the clocks skip %(start)s to %(end)s.")
        if change.skipped
        else _("%(day)s: the clocks show %(start)s to %(end)s twice.")
    )
    then = {
        Effect.MOVED: _("What falls due in it runs once, at %(end)s."),
        Effect.ONCE: _("It runs the first time only."),
        Effect.DROPPED: _("It follows real time: its runs of that hour do not take place on this day."),
        Effect.TWICE: _("It follows real time: its runs of that hour take place twice on this day."),
        Effect.STEADY: _("It follows real time, and its pace stays the same."),
    }[change.effect]
    return f"{what % facts} {then % facts}"


def _nothing_yet() -> SafeString:
    text = _("Enter a cron expression to see the next runs.")
    return format_html('<div class="sch-panel" data-live-said=""><p class="sch-quiet">{}</p></div>', text)
