"""Web serving on the page."""
