"""The load line: which rate to try next, what a trial showed, and the interval of what is found."""
