"""Alerts: evaluates the rules, and tells the channels when a situation begins and when it is over.

The process that holds the lease (`lease`) evaluates and sends. All others stand by.
"""
