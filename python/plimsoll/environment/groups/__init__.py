"""Control groups: the target's own group, its limits, the way into it, and holding still what is in it."""
