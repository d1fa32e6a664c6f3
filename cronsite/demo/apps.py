"""The demo app's configuration."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Names the app. The scheduling app finds `workers.py` here as in any installed app."""

    name = "cronsite.demo"
    label = "cronsite_demo"
    verbose_name = "Demo"
