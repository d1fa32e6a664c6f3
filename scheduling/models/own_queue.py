"""The columns with which a schedule overrides the queue and the priority of its runs."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.queues import IMMEDIATE, NAME_LENGTH, choice_problem, queue_problem
from scheduling.models.labels import PRIORITIES

SERVICES_QUEUE = _("A service has a queue of its own: leave the queue and the priority empty.")


class OwnQueue(models.Model):
    """A row with its own queue and priority. An empty column means that of the handler."""

    queue = models.CharField(
        _("queue"),
        max_length=NAME_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Only consumers of this queue run it (run_worker --queue). "
            "Empty: the queue of the target's code, else “main”."
        ),
    )
    priority = models.CharField(
        _("priority"),
        max_length=8,
        choices=list(PRIORITIES.items()),
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Who goes first when runs wait in the queue; a low run waits at most ten minutes longer. "
            "Empty: the priority of the target's code, else normal."
        ),
    )

    class Meta:
        abstract = True

    def queue_errors(self, *, service: bool) -> dict[str, ValidationError]:
        """Maps the name of each of the two columns that cannot be used to the error; empty if both can.

        Args:
            service: whether the row is a service.
        """
        if service and (self.queue or self.priority):
            return {"queue" if self.queue else "priority": ValidationError(SERVICES_QUEUE, code="queue")}
        problems = {
            "queue": queue_problem(self.queue) if self.queue != "" else "",
            "priority": choice_problem(IMMEDIATE if self.queue == IMMEDIATE else "", self.priority),
        }
        return {name: ValidationError(problem, code="queue") for name, problem in problems.items() if problem}
