"""Tells people something: reminders, delivered reports and alerts."""
