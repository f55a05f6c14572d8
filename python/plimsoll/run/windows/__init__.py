"""Windows: the servers of a block are up at once, and the load goes to one at a time, the others frozen."""
