"""Web servers of each trial's own: the files that they serve, their configuration, and the load on them."""
