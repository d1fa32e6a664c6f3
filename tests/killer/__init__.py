"""An app that ends its process with SIGKILL at a named boundary, once: KILL_AT names it, KILL_FLAG is its file."""
