"""Soaks: rounds compared, drift, steps, what grows and never falls, and what the kernel said."""
