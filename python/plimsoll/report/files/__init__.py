"""Loads on files on the page: phases, passes, operations."""
