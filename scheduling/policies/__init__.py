"""Rules that decide what may start: an execution of a schedule that runs alone."""
