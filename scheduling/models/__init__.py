"""The database models, one in each file."""

from scheduling.models.alert import Alert
from scheduling.models.alert_message import AlertMessage, AlertNotice
from scheduling.models.alert_rule import AlertRule
from scheduling.models.alert_watch import AlertWatch
from scheduling.models.answered_request import AnsweredRequest
from scheduling.models.api_token import ApiToken
from scheduling.models.artefact import Artefact
from scheduling.models.attempt import Attempt
from scheduling.models.backfill import Backfill
from scheduling.models.breaker import Breaker
from scheduling.models.calendar import Calendar
from scheduling.models.channel import Channel
from scheduling.models.dashboard import Dashboard
from scheduling.models.death_record import DeathRecord
from scheduling.models.deployment import Deployment
from scheduling.models.event import Event
from scheduling.models.execution import FailedExecution, SchedulerExecution
from scheduling.models.handler_set import HandlerSet, KnownHandler
from scheduling.models.known_error_group import KnownErrorGroup
from scheduling.models.limit import LimitKey, LimitPlace, LoweredLimit
from scheduling.models.notification import Notification
from scheduling.models.output import Output
from scheduling.models.pause import Pause
from scheduling.models.ping import Ping
from scheduling.models.process import Process
from scheduling.models.refused_row import RefusedRow
from scheduling.models.reminder import Reminder
from scheduling.models.replay import Replay, ReplayChunk, ReplayGroup
from scheduling.models.review import Review
from scheduling.models.run_step import RunStep
from scheduling.models.schedule_revision import ScheduleRevision
from scheduling.models.scheduler import Scheduler
from scheduling.models.start_deadline import StartDeadline
from scheduling.models.tally import Tally
from scheduling.models.tally_mark import TallyMark
from scheduling.models.tally_total import TallyTotal
from scheduling.models.uncounted_skip import UncountedSkip
from scheduling.models.worker import Worker
from scheduling.models.zone_data import MovedRun, ZoneData

__all__ = [
    "Alert",
    "AlertMessage",
    "AlertNotice",
    "AlertRule",
    "AlertWatch",
    "AnsweredRequest",
    "ApiToken",
    "Artefact",
    "Attempt",
    "Backfill",
    "Breaker",
    "Calendar",
    "Channel",
    "Dashboard",
    "DeathRecord",
    "Deployment",
    "Event",
    "FailedExecution",
    "HandlerSet",
    "KnownErrorGroup",
    "KnownHandler",
    "LimitKey",
    "LimitPlace",
    "LoweredLimit",
    "MovedRun",
    "Notification",
    "Output",
    "Pause",
    "Ping",
    "Process",
    "RefusedRow",
    "Reminder",
    "Replay",
    "ReplayChunk",
    "ReplayGroup",
    "Review",
    "RunStep",
    "ScheduleRevision",
    "Scheduler",
    "SchedulerExecution",
    "StartDeadline",
    "Tally",
    "TallyMark",
    "TallyTotal",
    "UncountedSkip",
    "Worker",
    "ZoneData",
]
