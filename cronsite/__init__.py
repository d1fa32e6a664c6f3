"""The Django site: settings from the environment, addresses, WSGI."""

__version__ = "0.1.0"
