"""Levels against levels within blocks: the best set, its intervals, and what equals differ by."""
