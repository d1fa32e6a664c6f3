"""The database models, one in each file."""

from scheduling.models.artefact import Artefact
from scheduling.models.attempt import Attempt
from scheduling.models.breaker import Breaker
from scheduling.models.channel import Channel
from scheduling.models.dashboard import Dashboard
from scheduling.models.death_record import DeathRecord
from scheduling.models.deployment import Deployment
from scheduling.models.event import Event
from scheduling.models.execution import FailedExecution, SchedulerExecution
from scheduling.models.handler_set import HandlerSet, KnownHandler
from scheduling.models.limit import LimitKey, LimitPlace, LoweredLimit
from scheduling.models.notification import Notification
from scheduling.models.output import Output
from scheduling.models.pause import Pause
from scheduling.models.process import Process
from scheduling.models.refused_row import RefusedRow
from scheduling.models.reminder import Reminder
from scheduling.models.replay import Replay, ReplayChunk, ReplayGroup
from scheduling.models.run_step import RunStep
from scheduling.models.scheduler import Scheduler
from scheduling.models.worker import Worker

__all__ = [
    "Artefact",
    "Attempt",
    "Breaker",
    "Channel",
    "Dashboard",
    "DeathRecord",
    "Deployment",
    "Event",
    "FailedExecution",
    "HandlerSet",
    "KnownHandler",
    "LimitKey",
    "LimitPlace",
    "LoweredLimit",
    "Notification",
    "Output",
    "Pause",
    "Process",
    "RefusedRow",
    "Reminder",
    "Replay",
    "ReplayChunk",
    "ReplayGroup",
    "RunStep",
    "Scheduler",
    "SchedulerExecution",
    "Worker",
]
