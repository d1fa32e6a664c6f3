"""Says why a failed execution is still in the inbox after an action, or is no longer there."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.execution.run_now import overlap_problem
from scheduling.models import SchedulerExecution


def not_moved(row: SchedulerExecution) -> str:
    """A sentence about an execution that an action has not moved."""
    still = SchedulerExecution.objects.filter(pk=row.pk, state=State.FAILED.value, attempt=row.attempt).exists()
    if still and (problem := in_language(overlap_problem(row.pk))):
        return _("Not republished: %(problem)s") % {"problem": problem}
    return _("Already handled by someone else.")
