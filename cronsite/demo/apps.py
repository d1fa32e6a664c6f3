"""The demo app's configuration."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Names the demo app. The scheduling app imports the module `workers` of every installed app."""

    name = "cronsite.demo"
    label = "cronsite_demo"
    verbose_name = "Demo"
