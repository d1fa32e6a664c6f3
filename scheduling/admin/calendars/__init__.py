"""The pages of calendars."""
