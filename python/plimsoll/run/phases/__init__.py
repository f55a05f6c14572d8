"""Phases over files, one after the other: each is a load with readings of its own."""
