"""The dashboard: what runs, what comes next, and what needs attention.

Each part of the page has a module with the function `<part>(viewer) -> context`, and a template with the part's name.
The page contains all parts. The script `poll.js` refreshes one part at a time.
"""

import scheduling.admin.dashboard.view  # noqa: F401 - importing it registers the page
