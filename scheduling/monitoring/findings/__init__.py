"""Findings say what is wrong with this installation and how to mend it. The doctor and the dashboard show them."""
