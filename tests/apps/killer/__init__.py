"""An app that kills its own process once with SIGKILL, at the place that the environment variable KILL_AT names.

The environment variable KILL_FLAG is the path of a file. The app creates this file before it kills the process.
"""
