"""The database's cache and Linux's together, drawn."""
