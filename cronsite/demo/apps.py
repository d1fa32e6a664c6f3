"""The demo app: wiring only."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Its `workers.py` is found as that of any installed app."""

    name = "cronsite.demo"
    label = "cronsite_demo"
    verbose_name = "Demo"
