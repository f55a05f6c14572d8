"""The servers under test: one room each, what private ones share, and the list of them."""
