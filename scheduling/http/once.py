"""Idempotency-Key: a request that is sent again with the same key is carried out once, and answered as the first time.

Two ways lead there. Most requests are one transaction with the row that keeps their answer: either both are stored, or
none of them. A request that works on many rows commits each part; its row is stored first, and a repeated request goes
on after a request that died.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.http.answers import JSON
from scheduling.http.auth import caller_of
from scheduling.http.bodies import read_body
from scheduling.http.problems import problem_response, refusal
from scheduling.models import AnsweredRequest
from scheduling.operations.refused import Refused
from scheduling.processes.conflicts import again_after_conflicts

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
KEPT = timedelta(days=1)
DEAD_AFTER = timedelta(seconds=60)
"""A request without an answer for so long has died: many web servers end a request after 30 s."""

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_KEPT_HEADERS = ("Content-Type", "Location", "ETag")


@dataclass(frozen=True)
class Asked:
    """A request with a key.

    Args:
        key: identifies it for the operations: a second run with the same key is the same run.
        first_at: when it was first sent, if an earlier request with this key has died; otherwise None.
    """

    key: uuid.UUID
    first_at: datetime | None = None

    @classmethod
    def new(cls) -> Asked:
        """A request without an Idempotency-Key."""
        return cls(uuid.uuid4())


Work = Callable[[Asked], HttpResponse]


def in_one(request: HttpRequest, needs: Sequence[str], work: Work) -> HttpResponse:
    """Carry out a request whose work is one transaction.

    Args:
        needs: permissions of which the caller must have one, also to get a stored answer again.

    Raises:
        Refused: IDEMPOTENCY_KEY_INVALID or IDEMPOTENCY_KEY_REUSED, or what the work raises. Then nothing is kept.
    """
    caller_of(request).must(*needs)
    row = _row(request)
    if row is None:
        return work(Asked.new())

    def whole() -> HttpResponse:
        row.pk = None
        if (known := _known(row)) is not None:
            return known
        with transaction.atomic():
            try:
                with transaction.atomic():
                    row.save(force_insert=True)
            except IntegrityError:
                response = None
            else:
                response = _done(work, row)
                _keep(row, response)
        return response if response is not None else _repeated(row)

    return again_after_conflicts(whole)


def _done(work: Work, row: AnsweredRequest) -> HttpResponse:
    """The answer of the work. A refusal that has stored a skipped run is an answer, too."""
    try:
        return work(_asked(row))
    except Refused as refused:
        if "execution" not in refused.extra:
            raise
        return problem_response(refused)


def in_parts(request: HttpRequest, needs: Sequence[str], work: Work) -> HttpResponse:
    """Carry out a request that commits its work in parts. If it died, a repeated request does the rest.

    Args:
        needs: as of `in_one`.

    Raises:
        Refused: as `in_one`; IDEMPOTENCY_IN_PROGRESS while the first request is carried out.
    """
    caller_of(request).must(*needs)
    row = _row(request)
    if row is None:
        return work(Asked.new())
    first_at = None
    if (known := _known(row)) is not None:
        return known
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        stored = AnsweredRequest.objects.filter(key_digest=row.key_digest).first()
        if stored is None or not _take_over(stored):
            return _repeated(row)
        # Whatever has failed since the first request was sent is not its business.
        first_at, row = stored.created_at, stored
    try:
        response = work(Asked(_asked(row).key, first_at))
    except Exception as error:
        mine = AnsweredRequest.objects.filter(pk=row.pk, status=None)
        if isinstance(error, Refused) and first_at is None and not error.extra.get("done"):
            mine.delete()  # nothing was done, so the key is free
        else:
            mine.update(taken_at=None)
        raise
    _keep(row, response)
    return response


def without_storing(request: HttpRequest, work: Work) -> HttpResponse:
    """Carry out a request that changes nothing. Its key is checked, but not kept.

    Raises:
        Refused: IDEMPOTENCY_KEY_INVALID, or what the work raises.
    """
    _row(request)
    return work(Asked.new())


def _row(request: HttpRequest) -> AnsweredRequest | None:
    """The row of a request, which is not stored; None without a key."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise refusal("IDEMPOTENCY_KEY_INVALID", _("An Idempotency-Key has 1 to 200 printable ASCII characters."))
    owner, now = caller_of(request).owner, clock.now()
    digest = hashlib.sha256()
    for part in (str(request.method), request.get_full_path()):
        digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
    digest.update(read_body(request))
    return AnsweredRequest(
        owner=owner, key=key, key_digest=AnsweredRequest.digest_of(owner, key), request_digest=digest.hexdigest(),
        created_at=now, taken_at=now,
    )  # fmt: skip


def _asked(row: AnsweredRequest) -> Asked:
    # The instant makes a key new again after its day.
    return Asked(uuid.uuid5(uuid.NAMESPACE_OID, f"{row.key_digest} {row.pk}"))


def _known(row: AnsweredRequest) -> HttpResponse | None:
    """The answer of an earlier request; None if there is none. A row that is older than a day is forgotten."""
    AnsweredRequest.objects.filter(key_digest=row.key_digest, created_at__lt=clock.now() - KEPT).delete()
    stored = AnsweredRequest.objects.filter(key_digest=row.key_digest).first()
    if stored is None or (stored.status is None and stored.request_digest == row.request_digest):
        return None
    return _answer(stored, row)


def _repeated(row: AnsweredRequest) -> HttpResponse:
    stored = AnsweredRequest.objects.filter(key_digest=row.key_digest).first()
    if stored is None or stored.status is None:
        said = _("The first request with this Idempotency-Key has no answer yet. Send it again in some seconds.")
        raise refusal("IDEMPOTENCY_IN_PROGRESS", said, headers={"Retry-After": "5"})
    return _answer(stored, row)


def _answer(stored: AnsweredRequest, row: AnsweredRequest) -> HttpResponse:
    if stored.request_digest != row.request_digest:
        said = _("This Idempotency-Key belongs to another request. Each request needs a key of its own.")
        raise refusal("IDEMPOTENCY_KEY_REUSED", said)
    headers = stored.headers if isinstance(stored.headers, dict) else {}
    kept = {name: str(headers[name]) for name in _KEPT_HEADERS if name in headers}
    kept = {"Content-Type": JSON, **kept, REPLAYED: "true"}
    return HttpResponse(stored.body, status=stored.status, headers=kept)


def _keep(row: AnsweredRequest, response: HttpResponse) -> None:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    rows = AnsweredRequest.objects.filter(pk=row.pk, status=None)
    rows.update(status=response.status_code, body=response.content.decode(), headers=headers)


def _take_over(stored: AnsweredRequest) -> bool:
    """Whether the request that stored the row has died, and this one may go on with it."""
    now = clock.now()
    if stored.status is not None or (stored.taken_at is not None and stored.taken_at > now - DEAD_AFTER):
        return False
    same = AnsweredRequest.objects.filter(pk=stored.pk, status=None, taken_at=stored.taken_at)
    return bool(same.update(taken_at=now))
