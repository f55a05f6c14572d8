"""Two runs, or two treatments of one, against each other: what changed, and which part explains it."""
