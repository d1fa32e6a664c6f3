"""Tells from memory that the database is away, and a broker beside it. The database gets the record afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import uuid4

from django.utils.translation import gettext as _

from scheduling.alerts.brokers import AWAY_KEY, BrokerWatch
from scheduling.alerts.letter import Digest, Told, facts_of, letter_of
from scheduling.alerts.look import Look, RuleProblem, span_of
from scheduling.alerts.notices import CALLED, Routes
from scheduling.alerts.reading import readable
from scheduling.alerts.rules.away import broker_away
from scheduling.alerts.tries import Ending, Tries, Try
from scheduling.core.alert_mutes import is_muted
from scheduling.core.alert_retry import next_try
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import Situation
from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel

KINDS = (RuleKind.DATABASE_AWAY, RuleKind.BROKER_AWAY)
"""What can be told without the database."""

MOST_RULES = 20
REASON_CHARS = 200

OF_RULES = ("pk", "name", "kind", "severity", "seconds", "muted_until")
"""The columns of a rule that are needed to tell it from memory."""

State = AlertMessage.State


@dataclass(frozen=True)
class KnownRule:
    """A rule as it was when the database answered for the last time.

    Args:
        seconds: for so long the server must be away.
        is_told: whether it had an open alert. Then it begins none from memory.
        channels: with their addresses and secrets.
    """

    row: AlertRule
    seconds: float
    is_told: bool
    channels: Sequence[Channel]


@dataclass(eq=False)
class Telling:
    """The start of an alert, for one channel: the same columns as the message that records it later."""

    channel: Channel
    created_at: datetime
    delivery_id: str = field(default_factory=lambda: uuid4().hex)
    state: str = State.WAITING
    tries: int = 0
    repeats: int = 0
    done: Sequence[str] = ()
    error: str = ""
    next_try_at: datetime | None = None
    ended_at: datetime | None = None
    message: int | None = None
    """The primary key of the message that records it; None if it is not on record."""

    def learn(self, ending: Ending, now: datetime) -> None:
        """Take over how a try has ended."""
        self.repeats, self.done, self.error = self.repeats + ending.unsure, sorted(ending.done), ending.error
        again = next_try(self.tries, self.created_at, now, ending.retry_after, self.repeats)
        if not ending.error:
            self.state, self.ended_at, self.next_try_at = State.SENT, now, None
        elif ending.given_up or again is None:
            self.state, self.ended_at, self.next_try_at = State.GIVEN_UP, now, None
        else:
            self.state, self.next_try_at = State.WAITING, again

    @property
    def has_begun(self) -> bool:
        """Whether a receiver has it or may have it, or it is given up. Otherwise it is told together with the end."""
        return self.state != State.WAITING or self.repeats > 0 or bool(self.done)


@dataclass
class Story:
    """An alert that is not on record yet."""

    rule: KnownRule
    situation: Situation
    started_at: datetime
    ended_at: datetime | None = None
    tellings: list[Telling] = field(default_factory=list)

    def begin(self, telling: Telling) -> Try:
        """The next try of a telling."""
        rule, situation = self.rule.row, self.situation
        told = Told(
            AlertNotice.Event.START, visible_text(rule.name), rule.kind, rule.severity, situation.subject,
            situation.seen, situation.advice, self.started_at,
        )  # fmt: skip
        digest = Digest.of([told])
        telling.tries += 1
        telling.state = State.SENDING
        letter, facts = letter_of(digest, telling.repeats), facts_of(digest, telling.repeats)
        return Try(telling.channel, letter, facts, telling.delivery_id, telling.done)


class Outage:
    """What this process tells while the database is away, if it has evaluated the alerts until then.

    Args:
        tries: where the messages are sent.
    """

    def __init__(self, tries: Tries[Telling]) -> None:
        self._tries = tries
        self._rules: Sequence[KnownRule] = ()
        self._since: datetime | None = None
        self._reason = ""
        self._stories: dict[int, Story] = {}
        self._late: list[tuple[Telling, Ending]] = []

    def remember(self) -> None:
        """Read the rules and channels that can be told from memory. The process that holds the lease does so each turn.

        A rule or a channel that cannot be read is left out.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        found = readable(AlertRule.objects.filter(enabled=True, kind__in=KINDS).order_by("pk"), MOST_RULES, OF_RULES)
        rows = [AlertRule(**dict(zip(OF_RULES, values, strict=True))) for values in found]
        if not rows:
            self._rules = ()
            return
        keys = [row.pk for row in rows]
        open_alerts = Alert.objects.filter(rule__in=keys, kind=RuleKind.BROKER_AWAY, key=AWAY_KEY, ended_at=None)
        self._rules = list(_known(rows, Routes(keys, CALLED), set(open_alerts.values_list("rule", flat=True))))

    def forget(self) -> None:
        """Another process evaluates, so this one tells nothing."""
        self._rules = ()

    def turn(self, now: datetime, reason: str, broker: BrokerWatch | None) -> None:
        """Tell what is due, while the database is away.

        Args:
            now: the time of the database, as this process counts it.
            reason: why the database cannot be reached.
        """
        if not self._rules:
            return
        if self._since is None:
            self._since = now
        self._reason = visible_text(" ".join(reason.split()), REASON_CHARS)
        self._learn(now)
        for rule in self._rules:
            self._look(rule, now, broker)
        for story in self._stories.values():
            self._send(story, now)

    def end(self, now: datetime) -> list[Story]:
        """The database answers again. Returns what it must record; the caller then calls `recorded` for each."""
        if self._since is None:
            return []
        self._learn(now)
        for story in self._stories.values():
            if story.rule.row.kind == RuleKind.DATABASE_AWAY and story.ended_at is None:
                story.ended_at = now
        if not self._stories:
            self._since = None
        return list(self._stories.values())

    def recorded(self, story: Story) -> None:
        """The database has this story, or will never take it. If it goes on, it is not begun again from memory."""
        self._stories.pop(pk := story.rule.row.pk, None)
        if story.ended_at is None:
            self._rules = [replace(rule, is_told=True) if rule.row.pk == pk else rule for rule in self._rules]
        if not self._stories:
            self._since = None

    def late(self, now: datetime) -> list[tuple[Telling, Ending]]:
        """The tries that have ended after their message was recorded."""
        self._learn(now)
        late, self._late = self._late, []
        return late

    @property
    def knows_rules(self) -> bool:
        """Whether this process can tell something without the database."""
        return bool(self._rules)

    @property
    def broker_seconds(self) -> float:
        """The longest time that a known rule waits for the broker; 0 if there is none."""
        return max((rule.seconds for rule in self._rules if rule.row.kind == RuleKind.BROKER_AWAY), default=0.0)

    @property
    def idle(self) -> bool:
        """Whether no message is being sent and nothing waits for the database."""
        return self._since is None and self._tries.idle and not self._late

    def _learn(self, now: datetime) -> None:
        for telling, ending in self._tries.ended():
            if telling.message is None:
                telling.learn(ending, now)
            else:
                self._late.append((telling, ending))

    def _look(self, rule: KnownRule, now: datetime, broker: BrokerWatch | None) -> None:
        situation = self._situation(rule, now, broker)
        story = self._stories.get(rule.row.pk)
        if story is not None:
            story.ended_at = None if situation is not None else story.ended_at or now
            return
        if situation is None or is_muted(rule.row.muted_until, now) or rule.is_told or not rule.channels:
            return
        is_database = rule.row.kind == RuleKind.DATABASE_AWAY
        story = Story(rule, situation, self._since if is_database and self._since is not None else now)
        story.tellings = [Telling(channel, now) for channel in rule.channels]
        self._stories[rule.row.pk] = story

    def _situation(self, rule: KnownRule, now: datetime, broker: BrokerWatch | None) -> Situation | None:
        if rule.row.kind == RuleKind.BROKER_AWAY:
            return next(iter(broker_away(rule.row, Look(now, broker))), None)
        if self._since is None or (now - self._since).total_seconds() < rule.seconds:
            return None
        return Situation(
            "database", _("database"), _("The database cannot be reached: %(reason)s") % {"reason": self._reason},
            _("Start the database, or mend the connection. Until then no run is started, and none is recorded."),
        )  # fmt: skip

    def _send(self, story: Story, now: datetime) -> None:
        for telling in story.tellings:
            due = telling.state == State.WAITING and (telling.next_try_at is None or telling.next_try_at <= now)
            if due and self._tries.has_room and not self._tries.calls(telling.channel.pk):
                self._tries.begin(telling, story.begin(telling))


def _known(rows: Sequence[AlertRule], routes: Routes, told: set[int]) -> Iterator[KnownRule]:
    for row in rows:
        row.name, row.severity = visible_text(row.name)[:100], visible_text(row.severity)[:10]  # SQLite has any type
        with suppress(RuleProblem):  # the evaluation has recorded it
            seconds = span_of(row).total_seconds()
            yield KnownRule(row, seconds, row.pk in told, routes.chosen(row.pk, row.severity, None))
