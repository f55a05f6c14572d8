"""Sentences about levels against levels, and about what changed between runs."""
