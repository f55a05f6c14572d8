"""The database's cache and Linux's together: held twice, and what explains the device reads."""
