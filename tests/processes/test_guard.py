"""A process looks whether it may work with its database. Each test changes the row, or what is known outside of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import BrokerUnavailable
from scheduling.broker.database import DatabaseBroker
from scheduling.core.deployment import LOST_TAIL_SECONDS, Cause, Held, Note
from scheduling.execution.claim import claim_due
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.execution.run_once import run_once
from scheduling.handlers.run_config import RunConfigs
from scheduling.inbox import actions, replay
from scheduling.inbox.sync import sync
from scheduling.models import Deployment, Replay, Scheduler, SchedulerExecution
from scheduling.processes import beat_file, deployment_row
from scheduling.processes import guard as guard_module
from scheduling.processes.guard import Guard, guard
from scheduling.producer.sweeps import sweep
from tests.factories import (
    FailedExecutionFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
    due,
)
from tests.support import NOON

pytestmark = pytest.mark.django_db


class Kept(DatabaseBroker):
    """A transport beside which a beat is kept, and which counts what is published."""

    embedded = False

    def __init__(self, kept: bytes | None = None, reachable: bool = True) -> None:
        super().__init__()
        self.kept, self.reachable, self.asked, self.sent = kept, reachable, 0, 0

    def beat(self, body: bytes) -> None:
        self.kept = body

    def newest_beat(self) -> bytes | None:
        self.asked += 1
        if not self.reachable:
            raise BrokerUnavailable("away")
        return self.kept

    def publish(self, messages: Any, queue: str = "main") -> set[int]:
        self.sent += len(messages)
        return super().publish(messages, queue)


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, settings: Any) -> Path:
    settings.CRON_BEAT_FILE = str(tmp_path / "beat.json")
    return tmp_path / "beat.json"


def another_deployment() -> None:
    Deployment.objects.update(name="production", fingerprints="0" * 32)


def restored(seconds: int = 3_600) -> None:
    """Let the row be as old as its backup."""
    row = Deployment.objects.get()
    Deployment.objects.update(worked=max(0, row.worked - seconds))


def worked(seconds: int = 7_200) -> None:
    Deployment.objects.update(worked=seconds)


def test_migrate_makes_the_row_and_the_first_look_gives_it_an_identity() -> None:
    Deployment.objects.all().delete()
    call_command("migrate", verbosity=0)
    row = Deployment.objects.get()
    assert (row.name, row.fingerprints, row.worked) == ("", "", 0)
    assert guard.look() is None
    row.refresh_from_db()
    assert len(row.fingerprints) == 32


def test_the_row_of_a_database_that_has_run_nothing_is_made_anew() -> None:
    Deployment.objects.all().delete()
    assert guard.look() is None
    assert Deployment.objects.count() == 1


def test_a_row_deleted_by_hand_is_a_hold_and_migrate_does_not_mend_it() -> None:
    SchedulerExecutionFactory()
    assert guard.look() is None
    Deployment.objects.all().delete()
    for _number in range(2):
        hold = guard.look()
        assert hold is not None
        assert hold.cause is Cause.MISSING
        call_command("migrate", verbosity=0)
    assert not Deployment.objects.exists()


def test_a_process_of_another_deployment_holds_by_itself_and_leaves_the_row_as_it_is() -> None:
    """The process may have wrong settings, and the database may be in use."""
    another_deployment()
    before = Deployment.objects.values().get()
    hold = guard.look()
    assert hold is not None
    assert hold.cause is Cause.OTHER
    guard.beat(DatabaseBroker(), clock.now())
    assert Deployment.objects.values().get() == before


def test_a_new_key_with_its_former_one_as_a_fallback_is_no_hold(settings: Any) -> None:
    assert guard.look() is None
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", [former]
    assert Guard().look() is None  # a new process of the deploy
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = former, []
    assert Guard().look() is None  # an old one
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", []
    assert Guard().look() is None  # the next deploy drops the former key
    settings.SECRET_KEY = "staging"
    assert Guard().look() is not None


def test_a_host_and_a_folder_may_change_and_a_name_may_be_given(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard.look() is None
    from django.db import connection

    monkeypatch.setitem(connection.settings_dict, "HOST", "standby.internal")
    assert Guard().look() is None
    settings.CRON_DEPLOYMENT = "production"
    assert Guard().look() is None
    settings.SECRET_KEY = "rotated without a fallback"  # the name decides
    assert Guard().look() is None
    settings.CRON_DEPLOYMENT = "staging"
    hold = Guard().look()
    assert hold is not None
    assert "“production”" in hold.said
    assert "“staging”" in hold.said


def test_a_living_process_remembers_and_records_it_for_all() -> None:
    worked()
    assert guard.look() is None
    restored()
    hold = guard.look()
    assert hold is not None
    assert hold.cause is Cause.RESTORED
    row = Deployment.objects.get()
    assert row.held_at is not None
    other = Guard().look()  # it knows nothing
    assert other is not None
    assert other.said == hold.said


def test_the_lost_tail_of_a_fail_over_is_no_hold_each_time() -> None:
    worked()
    for _number in range(50):
        assert guard.look() is None
        restored(LOST_TAIL_SECONDS)
    restored(1)
    assert guard.look() is not None


def test_the_file_tells_a_restore_while_all_processes_were_stopped(own_file: Path) -> None:
    worked()
    guard.beat(DatabaseBroker(), clock.now())
    assert own_file.exists()
    restored()
    guard.forget()
    assert guard.look() is not None


def test_the_broker_tells_a_restore_while_all_processes_were_stopped(settings: Any) -> None:
    settings.CRON_BEAT_FILE = ""
    worked()
    broker = Kept()
    for _number in range(2):  # the first look writes nothing, because another process may do so
        guard.beat(broker, clock.now())
    assert broker.kept is not None
    restored()
    guard.forget()
    assert guard.look() is None  # nothing is known
    assert guard.look(broker) is not None


def test_a_backup_from_before_the_last_confirmation_is_told() -> None:
    worked()
    guard.beat(DatabaseBroker(), clock.now())
    backup = Deployment.objects.values().get()
    another_deployment()
    deployment_row.confirm_row(guard_module.own_identity(), "anna", clock.now())
    guard.forget()
    guard.beat(DatabaseBroker(), clock.now())
    Deployment.objects.all().delete()
    Deployment.objects.create(**backup)
    guard.forget()
    assert guard.look() is not None


def test_a_process_that_has_slept_asks_again(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CRON_BEAT_FILE = ""
    worked(100)
    broker, at = Kept(), [0.0]
    monkeypatch.setattr(guard_module, "elapsed_seconds", lambda: at[0])
    assert guard.look(broker) is None
    at[0] = 5.0
    assert guard.look(broker) is None
    assert broker.asked == 1
    broker.kept = Note(Deployment.objects.get().timeline, 7_200, NOON).encode()
    at[0] = 60.0
    assert guard.look(broker) is not None


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b"[]", b'{"timeline": 1}', b"null", b"[" * 100_000])
def test_a_damaged_note_is_no_hold(body: bytes, own_file: Path) -> None:
    own_file.write_bytes(body)
    assert beat_file.read_notes() == []
    assert guard.look(Kept(body)) is None


def test_values_that_plain_sql_has_damaged_end_no_process() -> None:
    Deployment.objects.update(former="x " * 100, fingerprints=" ", held_reason="x", beat_at=None)
    assert guard.look() is None


def test_one_process_writes_the_beat_in_each_interval() -> None:
    fleet = [Guard() for _number in range(5)]
    for _turn in range(10):
        for process in fleet:
            process.beat(DatabaseBroker(), clock.now())
    assert Deployment.objects.get().worked == 9 * 5


def test_a_clock_that_jumps_is_no_hold() -> None:
    """The standby's clock may be wrong, and the host's clock may be set during the fail-over."""
    fleet = [Guard(), Guard()]
    now = clock.now()
    for jump in (timedelta(0), timedelta(days=-400), timedelta(hours=3), timedelta(minutes=-10)):
        restored(30)
        for process in (*fleet, Guard()):
            assert process.beat(DatabaseBroker(), now + jump) is None
            assert process.beat(DatabaseBroker(), now + jump) is None


def doors(broker: Kept) -> dict[str, Callable[[], object]]:
    """Everything that claims, starts or publishes, apart from the consumer's own start."""
    schedule, now = SchedulerFactory(), clock.now()
    due(SchedulerFactory(), now - timedelta(minutes=1))
    failed, replayed, requeued = (FailedExecutionFactory() for _number in range(3))
    claimed = SchedulerExecutionFactory(claimed=True, wake_at=now - timedelta(minutes=1))
    user = UserFactory()
    return {
        "claim": lambda: claim_due(now, embedded=False),
        "publish": lambda: publish([claimed], broker),
        "sweep": lambda: sweep(broker, now, RunConfigs()),
        "run now": lambda: run_now(schedule, broker),
        "run once": lambda: run_once(WorkerFactory(), broker, "anna", {}, uuid.uuid4()),
        "republish": lambda: actions.republish([failed.pk], broker, "anna"),
        "replay": lambda: replay.start(uuid.uuid4(), [[(replayed.pk, replayed.attempt)]], broker, user, "all"),
        "requeue": lambda: actions.requeue_in_transaction({requeued.pk: requeued.attempt}, broker, "x", now),
        "sync": lambda: sync(broker, now),
    }


@pytest.mark.parametrize("cause", [another_deployment, restored, lambda: Deployment.objects.all().delete()])
@pytest.mark.parametrize(
    "name", ["claim", "publish", "sweep", "run now", "run once", "republish", "replay", "requeue", "sync"]
)
def test_no_door_opens_while_the_database_is_held(name: str, cause: Callable[[], object]) -> None:
    worked()
    broker = Kept()
    door = doors(broker)[name]
    assert guard.look(broker) is None
    cause()

    def facts() -> object:
        rows = SchedulerExecution.objects.order_by("pk").values_list("pk", "state", "wake_at", "published_at")
        plans = Scheduler.objects.order_by("pk").values_list("pk", "next_run_at")
        return list(rows), list(plans), Replay.objects.count(), broker.sent

    before = facts()
    try:
        with transaction.atomic():
            door()
    except Held:
        pass
    else:
        assert name in {"publish", "sync"}
    assert facts() == before


def test_each_door_opens_without_a_hold() -> None:
    broker = Kept()
    for name, door in doors(broker).items():
        before = broker.sent, SchedulerExecution.objects.count()
        done = door()
        assert name == "sync" or done or before != (broker.sent, SchedulerExecution.objects.count()), name


def test_nothing_is_published_until_the_broker_has_been_asked() -> None:
    """A producer that starts while the broker is away claims on time. A restore may be known to the broker alone."""
    broker = Kept(reachable=False)
    row = SchedulerExecutionFactory(claimed=True)
    due(SchedulerFactory(), clock.now() - timedelta(minutes=1))
    assert guard.beat(broker, clock.now()) is None
    assert claim_due(clock.now(), embedded=False).claimed
    assert publish([row], broker) == 0
    assert broker.sent == 0
    broker.reachable = True
    assert publish([row], broker) == 1


@pytest.mark.django_db(transaction=True)
def test_a_consumer_takes_nothing_before_its_first_look() -> None:
    from scheduling.consumer.due_retries import Rescue
    from scheduling.consumer.keepalive import KeepAlive
    from scheduling.processes.loaded_code import LoadedCode
    from scheduling.processes.server_clock import ServerClock

    another_deployment()
    slots: Any = SimpleNamespace(count=1, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    broker = DatabaseBroker()
    keeper = KeepAlive(broker, slots, 15, ["main"], ServerClock(), LoadedCode(), Rescue(broker, ["main"]))
    assert keeper.holds
    keeper.keep(100.0, runs=0)
    assert keeper.holds
    Deployment.objects.update(name="", fingerprints="")
    keeper.keep(200.0, runs=0)
    assert not keeper.holds
