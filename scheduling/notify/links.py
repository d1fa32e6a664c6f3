"""Addresses of pages, for messages."""

from __future__ import annotations

from django.urls import NoReverseMatch, reverse

from scheduling.conf import get_conf


def absolute_url(name: str, *arguments: object) -> str:
    """The URL of a page with the address of the site; empty without CRON_SITE_URL or without the page."""
    site = get_conf().site_url
    try:
        return f"{site}{reverse(name, args=arguments)}" if site else ""
    except NoReverseMatch:
        return ""
