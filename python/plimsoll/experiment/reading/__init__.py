"""From a file to an experiment: its text, the line of each key, the files beside it, and every fault in it."""
