"""A secret is hidden wherever the params model says that a value may hold one, and under each of its names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, NamedTuple, Optional

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field, Secret, SecretStr
from typing_extensions import TypeAliasType, TypedDict

from scheduling.admin.params_diff import unmask
from scheduling.admin.params_model import MASK, default_problems, masked, secret_names
from scheduling.admin.params_schema import slots
from scheduling.registry import Handler


class Account(BaseModel):
    """A part that holds one."""

    name: str = ""
    token: SecretStr = SecretStr("")
    parent: Optional[Account] = None  # noqa: UP045 - as models are written that still run on older versions


@dataclass
class Login:
    """The same, of the standard library."""

    token: SecretStr


class Pair(NamedTuple):
    """The same, as a tuple."""

    token: SecretStr


class Mapped(TypedDict):
    """The same, as a dictionary."""

    token: SecretStr


class Token(SecretStr):
    """A project's own kind."""


Named = TypeAliasType("Named", SecretStr)


class Plain(BaseModel):
    """A part without one."""

    name: str = ""
    parent: Optional[Plain] = None  # noqa: UP045


class Params(BaseModel):
    """One of each."""

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


def test_everything_that_may_hold_one_is_known_and_nothing_else() -> None:
    assert OPEN.isdisjoint(secret_names(HANDLER))
    assert set(Params.model_fields) - OPEN <= secret_names(HANDLER)
    shown: dict[str, Any] = {"open": "seen", "part": {"name": "seen"}, "parts": {"a": [{"name": "seen"}]}}
    assert masked(HANDLER, shown) == shown


def test_the_form_shows_the_secrets_of_no_default() -> None:
    found = slots(HANDLER, dict.fromkeys(secret_names(HANDLER), "s3cret"))
    assert found is not None
    assert "s3cret" not in repr(found)
    assert all(each.hint for each in found)


def test_a_required_one_may_be_given_under_each_of_its_names() -> None:
    class Needs(BaseModel):
        token: SecretStr = Field(validation_alias=AliasChoices("one", "two"), min_length=8)

    handler = Handler(type="worker", name="y", call=lambda params, run: None, params=Needs)
    assert default_problems(handler, {"two": "long enough"}) == []
    (problem,) = default_problems(handler, {"two": "s3cret"})
    assert "at least 8" in problem
    assert "s3cret" not in problem
