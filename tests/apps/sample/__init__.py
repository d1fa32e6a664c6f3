"""Handlers that only the tests use."""
