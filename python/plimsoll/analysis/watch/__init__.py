"""Watching a server that Plimsoll did not start: its sessions, locks, queries and slowest transactions."""
