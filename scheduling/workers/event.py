"""The built-in worker `event`: delivers an event to the listeners of its topic, each as a step of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from django.utils import timezone as clock
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from scheduling.core import events
from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.snooze import Snooze
from scheduling.core.wait_sentences import NEW_LISTENERS
from scheduling.handlers import Run, worker
from scheduling.handlers.listeners import TYPE, Listener, listeners_of
from scheduling.models import Event, KnownHandler, Process, SchedulerExecution
from scheduling.signals import event_without_listener

NEW_CODE_SECONDS = 10
"""So long an event waits for the code of a newer consumer, before it is delivered again."""


class ListenersFailed(Exception):
    """Some listeners of an event have failed. A retry calls only those that have not finished."""


def _topic(topic: str) -> str:
    if problem := events.topic_problem(topic):
        raise PydanticCustomError("topic", problem.replace("{", "(").replace("}", ")"))
    return topic


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    if problem := events.metadata_problem(metadata):
        raise PydanticCustomError("metadata", problem)
    return metadata


class EventParams(BaseModel):
    """An event."""

    model_config = ConfigDict(extra="forbid")

    topic: Annotated[str, AfterValidator(_topic)] = Field(description="Its listeners are called.")
    payload: dict[str, Any] = Field(default_factory=dict, description="What the listeners get, as a JSON object.")
    metadata: Annotated[dict[str, Any], AfterValidator(_metadata)] = Field(
        default_factory=dict, description="For searching and for signals, as a JSON object."
    )
    retry: dict[str, Any] = Field(default_factory=dict, description="The retry policy of this event. Empty: the usual.")


@worker(events.WORKER, params=EventParams, title="Event", retry_of=events.policy_of)
def event(params: EventParams, run: Run) -> dict[str, int]:
    """Delivers an event: calls each listener of its topic that has not finished yet.

    Raises:
        ListenersFailed, RetryableError, NonRetryableError: a listener has failed. All others were called.
        Snooze: a newer consumer knows further listeners, or a listener is not ready.
    """
    keep(run.execution_id, params.topic, params.metadata)
    found = listeners_of(params.topic)
    told = replace(run, event=events.Event(params.topic, params.metadata))
    failures = [failure for each in found if (failure := _call(each, params, told)) is not None]
    _raise_failures(failures, len(found))
    if missing := _only_in_newer_code(params.topic, {each.name for each in found}, run.execution_id):
        names = ", ".join(sorted(missing))
        raise Snooze(NEW_CODE_SECONDS, reason=NEW_LISTENERS.format(names=names))
    if not found:
        run.log.warning("No listener for the topic %r", params.topic)
        event_without_listener.send_robust(sender=Event, execution_id=run.execution_id, topic=params.topic)
    return {"listeners": len(found)}


def keep(execution_id: int, topic: str, metadata: dict[str, Any]) -> None:
    """Store the topic and the metadata of an execution, by which the pages find it."""
    values = {"topic": topic, "metadata": metadata}
    if SchedulerExecution.objects.filter(pk=execution_id).exists():  # a test may run it without a row
        Event.objects.get_or_create(execution_id=execution_id, defaults=values)


def _call(listener: Listener, params: EventParams, run: Run) -> tuple[Listener, Exception] | None:
    """Call a listener, unless it has finished. Returns its error."""
    try:
        step: Callable[[], Any] = partial(_answer, listener, params, run)
        run.step(listener.name, step, atomic=listener.atomic)
    except Exception as error:
        if not isinstance(error, Snooze):
            run.log.exception("The listener %s has failed", listener.name)
        return listener, error
    return None


def _answer(listener: Listener, params: EventParams, run: Run) -> None:
    try:
        given = listener.validated(params.payload)
    except ValidationError as error:
        raise NonRetryableError(f"The payload does not fit: {error.error_count()} errors.") from error
    listener.call(given, run)


def _raise_failures(failures: list[tuple[Listener, Exception]], called: int) -> None:
    """Raise one error that names all listeners that failed."""
    failed = [(listener, error) for listener, error in failures if not isinstance(error, Snooze)]
    if not failed:
        for _listener, error in failures:
            raise error
        return
    names = ", ".join(f"{listener.name} ({type(error).__name__}: {error!s:.200})" for listener, error in failed)
    text = f"{len(failed)} of {called} listeners failed: {names}"
    if all(isinstance(error, NonRetryableError) for _listener, error in failed):
        raise NonRetryableError(text)
    waits = [error.retry_after for _listener, error in failed if isinstance(error, RetryableError)]
    known = [seconds for seconds in waits if seconds is not None]
    if known:
        raise RetryableError(text, retry_after=max(known))
    raise ListenersFailed(text)


def _only_in_newer_code(topic: str, own: set[str], execution_id: int) -> set[str]:
    """The listeners that an alive consumer knows which started after the one that runs this event.

    During a deploy, a consumer with the former code must not take an event for delivered.
    """
    here = SchedulerExecution.objects.filter(pk=execution_id).values_list("consumer", flat=True).first()
    started = Process.objects.filter(container_id=here or "").values_list("started_at", flat=True).first()
    if started is None:
        return set()
    newer = Process.objects.alive(clock.now(), Process.Kind.CONSUMER).filter(started_at__gt=started)
    sets = {row.known_set for row in newer if row.known_set is not None}
    if not sets:
        return set()
    known = KnownHandler.objects.filter(type=TYPE, name__startswith=f"{topic} ", handler_set__in=sets)
    names = {str(name).removeprefix(f"{topic} ") for name in known.values_list("name", flat=True)}
    return names - own
