"""The tests of decision support, whichever server performs them, and the check of its answers."""
