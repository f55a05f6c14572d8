"""What to do next, from what a run could tell and what it could not."""
