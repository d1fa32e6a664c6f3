"""A backend for Django's Tasks framework: functions with `@task` run as executions (docs/tasks.md).

```python
TASKS = {"default": {"BACKEND": "scheduling.tasks.CronBackend"}}
```

Without the framework (Django 5.2 without the package django-tasks), this package can be imported, and has no
`CronBackend`. Modules with tasks may be imported before the models are loaded, so no module that this one imports needs
the models.
"""

from scheduling.tasks.errors import AttemptEnded, ReturnValueInvalid
from scheduling.tasks.framework import FRAMEWORK
from scheduling.tasks.options import task_options

__all__ = ["AttemptEnded", "ReturnValueInvalid", "task_options"]

if FRAMEWORK is not None:
    from scheduling.tasks.backend import CronBackend

    __all__ += ["CronBackend"]
