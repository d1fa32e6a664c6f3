"""The operators' pages. Importing this package registers them, which is what Django's autodiscovery does."""

import scheduling.admin.alert_rules.admin
import scheduling.admin.alerts.admin
import scheduling.admin.backfills.admin
import scheduling.admin.breakers.admin
import scheduling.admin.calendars.admin
import scheduling.admin.channels.admin
import scheduling.admin.dashboard.view
import scheduling.admin.deployment.admin
import scheduling.admin.executions.admin
import scheduling.admin.executions.artefacts
import scheduling.admin.executions.events
import scheduling.admin.inbox.admin
import scheduling.admin.limits.admin
import scheduling.admin.pauses.admin
import scheduling.admin.processes.admin
import scheduling.admin.processes.moved_runs
import scheduling.admin.replays.admin
import scheduling.admin.review.view
import scheduling.admin.schedulers.admin
import scheduling.admin.targets.admin
import scheduling.admin.targets.reminders
import scheduling.admin.tokens.admin  # noqa: F401 - importing them registers their pages
