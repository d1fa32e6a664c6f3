"""Makes HTTP calls that end in time, whatever the server or the look-up of its name does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread

from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.notify.guarded_http import LATER, Answer, Forbidden, NoAnswer, call
from scheduling.notify.secret_text import without_secrets

SECONDS = 10.0
"""The longest time for one call."""


@dataclass(frozen=True)
class Request:
    """One call.

    Args:
        secrets: texts that must not stand in a reason, such as the URL.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """How a call ended.

    Args:
        reason: why the event was not delivered: a sentence without secrets; empty if it was delivered.
        later: whether a later try can work.
        silent: whether the server did not answer at all.
    """

    reason: str = ""
    later: bool = False
    silent: bool = False


LATE = Ending(say.LATE.format(seconds=f"{SECONDS:g}"), later=True, silent=True)


def send_all(requests: Sequence[Request], seconds: float = SECONDS) -> list[Ending]:
    """Make the calls at once, each in a thread of its own, and return their ends in the same order.

    A call that has not ended in time is given up: no time limit of a connection ends one to a server that sends one
    byte now and then.
    """
    ends: list[Ending] = [LATE] * len(requests)

    def work(number: int, request: Request) -> None:
        ends[number] = send(request, seconds)

    threads = [Thread(target=work, args=pair, name="ping", daemon=True) for pair in enumerate(requests)]
    until = time.monotonic() + seconds + 0.5
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return list(ends)


def send(request: Request, seconds: float = SECONDS) -> Ending:
    """Make one call. It raises no error."""
    try:
        answer = call(request.method, request.url, request.headers, request.body, seconds)
    except Forbidden as error:
        return Ending(_safe(str(error), request))
    except NoAnswer as error:
        words = str(error).partition(":")[0]
        return Ending(say.AWAY.format(error=words), later=True, silent=True)
    except Exception as error:  # whatever a library raises must not end the thread
        return Ending(say.CALL_FAILED.format(error=_safe(type(error).__name__, request)), later=True)
    return _ending(answer, request)


def _ending(answer: Answer, request: Request) -> Ending:
    if 200 <= answer.status < 300:
        return Ending()
    if 300 <= answer.status < 400:
        return Ending(say.MOVED.format(status=answer.status))
    words = _safe(" ".join(answer.body.decode("utf-8", "replace").split()), request)
    return Ending(say.ANSWERED.format(status=answer.status, words=words or say.NO_TEXT), later=answer.status in LATER)


def _safe(text: str, request: Request) -> str:
    return visible_text(without_secrets(text, request.secrets), 300)
