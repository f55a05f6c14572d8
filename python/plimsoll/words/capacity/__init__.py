"""Sentences about searches for the load line."""
