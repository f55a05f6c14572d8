"""Watching a server that runs its own load, and telling Prometheus what goes on."""
