"""Sends generated requests to the API in this process, and compares the answers with the OpenAPI document."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

import schemathesis
from django.core.signals import got_request_exception
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection
from pydantic_core.core_schema import ErrorType
from schemathesis import Case, GenerationMode, Response
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from tests.admin.walk import undone
from tests.admin.world import changed, world
from tests.hostile.tries import Faults
from tests.http.team_rows import MARK, Teams

FORM_ERRORS = frozenset(get_args(ErrorType)) - {"value_error"}
"""The codes with which pydantic refuses a value. The document describes all that pydantic checks itself."""
REFUSED = frozenset({400, 401, 403, 404, 405, 411, 412, 413, 415, 422, 429})
"""With these answers, nothing has changed. A 409 may have stored the skipped run that it tells of."""
READING = ("GET", "HEAD", "OPTIONS", "TRACE")
OF_EACH_REQUEST = {"scheduling.ApiToken", "scheduling.AnsweredRequest"}
"""Tables that a request may change although it changes nothing: when a token was used, and the answer to a key."""
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
]


class Fuzzer:
    """Sends cases as one of the users, and collects what is wrong. What a request has changed is undone."""

    def __init__(self, teams: Teams) -> None:
        self.teams, self.faults, self.answers = teams, Faults(), Counter[int]()
        self.schema = schemathesis.openapi.from_wsgi("/cron/openapi.json", _closing(get_wsgi_application()))
        self.schema.config.generation.update(with_security_parameters=False)
        self.operations = [found.ok() for found in self.schema.get_all_operations()]
        self.before = world()

    def limits(self, operation: Any) -> Iterator[Case]:
        """Cases at the limits of each value, with wrong methods, and with wrong content types."""
        config = self.schema.config.generation
        yield from self.schema.iter_coverage_cases(
            operation, generation_modes=list(GenerationMode), generation_config=config
        )

    @property
    def sent(self) -> int:
        """How many requests were answered."""
        return self.answers.total()

    def send(self, case: Case, role: str) -> None:
        """Send a case, and note what is wrong with its answer.

        Args:
            role: whose token is sent; empty: none.
        """
        headers = {"Authorization": f"Bearer {self.teams.secrets[role]}"} if role else {}
        said = f"{role or 'without a token'} {case.operation.label}"
        response: Response | None = None
        with undone(), _errors() as errors, _writes() as writes:
            try:
                response = case.call(headers=headers)
                case.validate_response(response, CHECKS, headers=headers)
            except FailureGroup as group:
                for failure in group.exceptions:
                    reason = f"{case.operation.label} {type(failure).__name__}: {failure.title} {failure.message[:300]}"
                    self._fault(reason, said, case, response, errors)
            if response is None:
                return
            self.answers[response.status_code] += 1
            for problem in self._problems(case, role, response, bool(writes)):
                self._fault(f"{case.operation.label}: {problem}", said, case, response, errors)

    def _problems(self, case: Case, role: str, response: Response, has_written: bool) -> Iterator[str]:
        text = response.content.decode("utf-8", "replace")
        if MARK in text:
            yield "the answer has a row of another group"
        if not role and response.status_code not in (401, 405):
            yield f"a request without a token is answered with {response.status_code}"
        if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code in (400, 422):
            yield from unreasoned(json.loads(text))
        if not has_written:
            return
        try:
            after = world()
        except DatabaseError:  # PostgreSQL: a refused statement has ended the transaction, so nothing is stored
            return
        found = changed(self.before, after)
        lost = [label for label, rows in self.teams.foreign.items() if any(row not in after[label] for row in rows)]
        if lost:
            yield f"rows of another group have changed: {lost}"
        others = set(found) - OF_EACH_REQUEST
        if others and (role in ("", "viewer") or case.method in READING or response.status_code in REFUSED):
            yield f"rows have changed: {sorted(others)}"

    def _fault(self, reason: str, said: str, case: Case, response: Any, errors: list[str]) -> None:
        answer = f"{response.status_code} {response.content[:300]!r}" if response is not None else ""
        self.faults.add(" ".join(reason.split()), self.sent, f"{said}\n      {_shown(case)}\n      {answer} {errors}")


def _closing(application: Any) -> Any:
    """Return an application that closes its answers, as web servers do. The client of schemathesis does not."""

    def answered(environ: Any, start_response: Any) -> list[bytes]:
        answer = application(environ, start_response)
        try:
            return [b"".join(answer)]
        finally:
            answer.close()

    return answered


def unreasoned(problem: dict[str, Any]) -> Iterator[str]:
    """What a refusal of values that fit the document lacks: it must not be one for their form, and gives a reason."""
    if not problem.get("detail"):
        yield "a refusal gives no reason"
    for error in problem.get("errors", []):
        if error["code"] in FORM_ERRORS:
            yield f"the document allows a value, but the API refuses its form: {error['field']} {error['code']}"
        if not error["message"]:
            yield "a refused value has no reason"
    if problem["code"] == "INVALID" and not problem["errors"]:
        yield "no refused value is named"


def _shown(case: Case) -> str:
    parts = {"path": case.formatted_path, "query": case.query, "headers": dict(case.headers or {}), "body": case.body}
    return ", ".join(f"{name} {value!r:.300}" for name, value in parts.items() if value)


@contextmanager
def _errors() -> Iterator[list[str]]:
    """Collect where exceptions come from that Django answers with a server error."""
    found: list[str] = []

    def note(**_kwargs: Any) -> None:
        found.append(traceback.format_exc(limit=-4))

    got_request_exception.connect(note)
    try:
        yield found
    finally:
        got_request_exception.disconnect(note)


@contextmanager
def _writes() -> Iterator[list[str]]:
    """Collect the statements that may change rows."""
    found: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.lstrip("( ").upper().startswith(("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "EXPLAIN")):
            found.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found
