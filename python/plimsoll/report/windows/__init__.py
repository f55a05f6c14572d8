"""The section of runs that were made in windows."""
