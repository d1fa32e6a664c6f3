"""The database models, one in each file."""

from scheduling.models.artefact import Artefact
from scheduling.models.attempt import Attempt
from scheduling.models.channel import Channel
from scheduling.models.dashboard import Dashboard
from scheduling.models.death_record import DeathRecord
from scheduling.models.deployment import Deployment
from scheduling.models.execution import FailedExecution, SchedulerExecution
from scheduling.models.handler_set import HandlerSet, KnownHandler
from scheduling.models.notification import Notification
from scheduling.models.output import Output
from scheduling.models.process import Process
from scheduling.models.refused_row import RefusedRow
from scheduling.models.reminder import Reminder
from scheduling.models.replay import Replay, ReplayChunk, ReplayGroup
from scheduling.models.scheduler import Scheduler
from scheduling.models.worker import Worker

__all__ = [
    "Artefact",
    "Attempt",
    "Channel",
    "Dashboard",
    "DeathRecord",
    "Deployment",
    "FailedExecution",
    "HandlerSet",
    "KnownHandler",
    "Notification",
    "Output",
    "Process",
    "RefusedRow",
    "Reminder",
    "Replay",
    "ReplayChunk",
    "ReplayGroup",
    "Scheduler",
    "SchedulerExecution",
    "Worker",
]
