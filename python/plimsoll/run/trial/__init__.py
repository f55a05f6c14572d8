"""One trial: a server at work, the segments that are performed on it one after the other, and what is written down."""
