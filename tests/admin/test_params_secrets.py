"""Pages hide the values that a params model declares as secrets, also in nested models and under aliases."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, NamedTuple, Optional

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pydantic import AliasChoices, AliasPath, BaseModel, Field, Secret, SecretStr
from typing_extensions import TypeAliasType, TypedDict

from scheduling.admin.params.model import default_problems
from scheduling.admin.params.schema import slots
from scheduling.handlers import Handler, registry
from scheduling.handlers.secret_params import MASK, masked, secret_names
from scheduling.models import SchedulerExecution
from scheduling.operations.params_diff import unmask
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import form
from tests.apps.sample.workers import noop
from tests.factories import ReportFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory


class Account(BaseModel):
    """A nested model with a secret."""

    name: str = ""
    token: SecretStr = SecretStr("")
    parent: Optional[Account] = None  # noqa: UP045 - the spelling of older code


@dataclass
class Login:
    """A dataclass with a secret."""

    token: SecretStr


class Pair(NamedTuple):
    """A named tuple with a secret."""

    token: SecretStr


class Mapped(TypedDict):
    """A typed dictionary with a secret."""

    token: SecretStr


class Token(SecretStr):
    """A project's own subclass of SecretStr."""


Named = TypeAliasType("Named", SecretStr)


class Plain(BaseModel):
    """A nested model without a secret."""

    name: str = ""
    parent: Optional[Plain] = None  # noqa: UP045


class Params(BaseModel):
    """A params model with a secret in every kind of field."""

    plain: SecretStr = SecretStr("")
    annotated: Annotated[SecretStr | None, Field(min_length=3)] = None
    listed: list[SecretStr] = []
    by_name: dict[str, SecretStr] = {}
    token: Token = Token("")
    generic: Secret[date] | None = None
    aliased: SecretStr = Field(SecretStr(""), alias="apiKey")
    read_as: SecretStr = Field(SecretStr(""), validation_alias="readAs")
    either: SecretStr = Field(SecretStr(""), validation_alias=AliasChoices("one", AliasPath("two", 0)))
    path: SecretStr = Field(SecretStr(""), validation_alias=AliasPath("deep", 0))
    account: Account = Account()
    accounts: list[Account] = []
    login: Login | None = None
    pair: Pair | None = None
    mapped: Mapped | None = None
    named: Named = SecretStr("")
    open: str = ""
    part: Plain = Plain()
    parts: dict[str, list[Plain]] = {}


HANDLER = Handler(type="worker", name="x", call=lambda params, run: None, params=Params)
OPEN = {"open", "part", "parts"}


@pytest.mark.parametrize("key", sorted(secret_names(HANDLER) | {"readAs", "one", "two", "deep", "mapped", "named"}))
def test_each_key_that_may_hold_a_secret_is_hidden(key: str) -> None:
    for value in ("s3cret", ["s3cret"], {"token": "s3cret"}, [{"token": "s3cret"}]):
        assert masked(HANDLER, {key: value}) == {key: MASK}
        assert unmask(HANDLER, {key: value}, {key: MASK}) == {key: value}


def test_secret_detection_finds_all_secret_fields_and_no_other() -> None:
    assert OPEN.isdisjoint(secret_names(HANDLER))
    assert set(Params.model_fields) - OPEN <= secret_names(HANDLER)
    shown: dict[str, Any] = {"open": "seen", "part": {"name": "seen"}, "parts": {"a": [{"name": "seen"}]}}
    assert masked(HANDLER, shown) == shown


def test_the_form_hides_secret_defaults() -> None:
    found = slots(HANDLER, dict.fromkeys(secret_names(HANDLER), "s3cret"))
    assert found is not None
    assert "s3cret" not in repr(found)
    assert all(slot.hint for slot in found)


def test_a_required_param_may_have_any_of_its_aliases() -> None:
    class Needs(BaseModel):
        token: SecretStr = Field(validation_alias=AliasChoices("one", "two"), min_length=8)

    handler = Handler(type="worker", name="y", call=lambda params, run: None, params=Needs)
    assert default_problems(handler, {"two": "long enough"}) == []
    (problem,) = default_problems(handler, {"two": "s3cret"})
    assert "at least 8" in problem
    assert "s3cret" not in problem


class Holds(BaseModel):
    """A params model in which `token` is a secret."""

    token: SecretStr = SecretStr("")


class Shows(BaseModel, extra="allow"):
    """A params model in which `token` is plain text."""

    token: str = ""


@pytest.fixture
def moved(db: None, monkeypatch: pytest.MonkeyPatch) -> SchedulerExecution:
    """An execution that ran with a secret `token`. Later the schedule got a target that shows `token` as plain text."""
    for name, model in (("tests.holds", Holds), ("tests.shows", Shows)):
        monkeypatch.setitem(registry._handlers, ("worker", name), Handler("worker", name, noop, params=model))
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.holds"), params={"token": "s3cret"})
    row: SchedulerExecution = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True)
    scheduler.worker, scheduler.params = WorkerFactory(name="tests.shows"), {}
    scheduler.save()
    return row


def address(row: Any, name: str = "change") -> str:
    return reverse(f"admin:scheduling_{row._meta.model_name}_{name}", args=[row.pk])


def said() -> str:
    return " ".join(LogEntry.objects.values_list("change_message", flat=True))


def test_changing_the_target_leaves_no_secret_in_the_history(editor: Client, moved: SchedulerExecution) -> None:
    row = moved.scheduler
    assert row is not None
    shows, holds = row.worker_id, WorkerFactory(name="tests.holds").pk
    row.worker_id, row.params = holds, {"token": "s3cret"}
    row.save()
    for worker, params in ((shows, {}), (holds, {"token": "s3cret"}), (shows, {"token": "plain"})):
        values = form(worker=worker, params=json.dumps(params))
        assert editor.post(address(row), values).status_code == 302
    assert LogEntry.objects.count() == 3
    assert "params.token" in said()
    assert "s3cret" not in said()
    assert "s3cret" not in editor.get(address(row, "history")).content.decode()


def test_the_execution_page_hides_the_current_secrets_of_the_schedule(
    viewer: Client, moved: SchedulerExecution
) -> None:
    row = moved.scheduler
    assert row is not None
    row.params = {}
    row.worker = WorkerFactory(name="tests.holds")
    row.save()
    moved.target_name, moved.target_id, moved.params = "tests.shows", WorkerFactory(name="tests.shows").pk, {}
    moved.save()
    row.params = {"token": "s3cret"}
    row.save()
    page = viewer.get(address(moved)).content.decode()
    assert MASK in page
    assert "s3cret" not in page


def test_edit_and_rerun_hides_secrets_of_the_former_target(operator: Client, moved: SchedulerExecution) -> None:
    asked = operator.post(address(moved, "edit_rerun"), {"params": '{"token": "mine"}'})
    assert asked.status_code == 200
    assert "s3cret" not in asked.content.decode()
    operator.post(address(moved, "edit_rerun"), dict(asked.context["c"].hidden))
    assert SchedulerExecution.objects.count() == 2
    assert "token" in said()
    assert "s3cret" not in said()


def test_run_again_does_not_pass_a_secret_to_another_target(operator: Client, moved: SchedulerExecution) -> None:
    page = operator.post(address(moved, "rerun"), {"post": "yes"})
    assert page.status_code == 200
    assert "secrets are not copied to it" in page.content.decode()
    assert SchedulerExecution.objects.count() == 1


@pytest.mark.parametrize(
    "model", ["scheduler", "schedulerexecution", "failedexecution", "worker", "reminder", "replay", "process", "report"]
)
@pytest.mark.parametrize(
    "lookup", ["params__token__startswith", "params__contains", "params", "scheduler__params__token"]
)
def test_no_list_can_be_filtered_by_a_secret(model: str, lookup: str, db: None) -> None:
    viewer = logged_in(UserFactory(superuser=True))
    app = "cron_reports" if model == "report" else "scheduling"
    SchedulerFactory(params={})
    page = viewer.get(reverse(f"admin:{app}_{model}_changelist"), {lookup: "s"})
    assert page.status_code == 400 or "e=1" in page["Location"]


@pytest.fixture(params=["worker", "report"])
def target(request: pytest.FixtureRequest, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A target whose defaults hold a secret."""
    kind = request.param
    monkeypatch.setitem(registry._handlers, (kind, "tests.holds"), Handler(kind, "tests.holds", noop, params=Holds))
    factory, name = (WorkerFactory, "name") if kind == "worker" else (ReportFactory, "controller")
    return factory(**{name: "tests.holds", "params": {"token": "s3cret"}})


def page_of(row: Any, name: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{name}", args=[row.pk])


def test_the_defaults_of_a_target_are_shown_without_their_secrets(editor: Client, target: Any) -> None:
    label, model = target._meta.app_label, target._meta.model_name
    viewer = logged_in(UserFactory(permissions=[f"{label}.view_{model}"]))
    for client in (viewer, editor):
        page = client.get(page_of(target)).content.decode()
        assert MASK in page
        assert "s3cret" not in page


def test_target_secret_survives_an_edit_and_stays_out_of_the_history(editor: Client, target: Any) -> None:
    def post(params: dict[str, Any]) -> Any:
        target.refresh_from_db()
        data = {"title": "T", "description": "", "params": json.dumps(params)}
        return editor.post(page_of(target), data)

    assert post({"token": MASK}).status_code == 302
    target.refresh_from_db()
    assert target.params == {"token": "s3cret"}
    assert post({"token": "s3cret too"}).status_code == 302
    target.refresh_from_db()
    assert target.params == {"token": "s3cret too"}
    assert "token" in said()
    assert "s3cret" not in said()
    assert "s3cret" not in editor.get(page_of(target, "history")).content.decode()
    assert post({}).status_code == 302
    assert "was hidden" in post({"token": MASK}).content.decode()
