"""The dashboard: what runs, what comes next, what needs somebody. Importing the package registers its page.

Each part is a module with one function, `<part>(viewer) -> context`, and a template of the same name; the
page shows all parts, and the poller (`poll.js`) asks for one at a time.
"""

import scheduling.admin.dashboard.view  # noqa: F401 - importing it registers the page
