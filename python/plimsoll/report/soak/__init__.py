"""The page's sections of a soak."""
