"""The operators' pages. Importing this package registers them, which is what Django's autodiscovery does."""

import scheduling.admin.breakers.admin
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
import scheduling.admin.replays.admin
import scheduling.admin.schedulers.admin
import scheduling.admin.targets.admin
import scheduling.admin.targets.reminders  # noqa: F401 - importing them registers their pages
