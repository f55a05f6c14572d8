"""Loads on files: what each phase moved and what it cost, what the page cache did, operations by kind."""
