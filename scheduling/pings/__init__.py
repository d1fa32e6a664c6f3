"""Tells outside monitors how the runs of schedules go, and that this installation lives."""
