"""Sentences about what the probes saw."""
