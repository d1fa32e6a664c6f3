"""The handler of all reminders: sends a message to each recipient."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from scheduling.core.outcome import NonRetryableError
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers import Handler, Run, register
from scheduling.handlers.secret_params import masked
from scheduling.models import Reminder, Scheduler
from scheduling.notify.message_template import MessageTemplateError
from scheduling.notify.outbox import Recipient, send_to_all
from scheduling.notify.reminder_letter import letter_of, message_data, recipients_of, surroundings, webhook_facts


class ReminderParams(BaseModel):
    """Values for the templates of a reminder. Any JSON is possible."""

    model_config = ConfigDict(extra="allow")


def send(params: ReminderParams, run: Run) -> None:
    """Send the reminder to all its recipients.

    Raises:
        NonRetryableError: the reminder was deleted, a template cannot be used, or a recipient was refused for good.
        RetryableError: a server did not take some of the messages.
    """
    reminder = Reminder.objects.filter(pk=run.target_id).first() if run.target_id else None
    if reminder is None:
        raise NonRetryableError("The reminder was deleted.")
    scheduler = Scheduler.objects.filter(pk=run.scheduler_id).first() if run.scheduler_id else None
    data = message_data(reminder, scheduler, run.scheduled_at, params.model_extra or {}, run.trigger)
    shown = masked(HANDLER, data["params"])
    facts = webhook_facts(reminder, data, shown, run.execution_key)
    recipients = recipients_of(reminder)
    with surroundings(data, run.language):
        try:
            # The first letter is written before anything is sent. So a wrong template reaches no recipient.
            letter_of(reminder, data, recipients[0] if recipients else Recipient(""))
            send_to_all(run, recipients, lambda recipient: letter_of(reminder, data, recipient), facts)
        except MessageTemplateError as error:
            raise NonRetryableError(f"The reminder's text cannot be used. {error}") from None


HANDLER = Handler(
    type="reminder",
    name=TARGET_KINDS["reminder"].handler,
    call=send,
    params=ReminderParams,
    title="Reminder",
    description="Sends a message to users, groups of users, addresses and channels.",
)
register(HANDLER)
