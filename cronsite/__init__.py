"""The ready-made Django site, with settings from the environment, URLs and a WSGI application."""

__version__ = "0.1.0"
