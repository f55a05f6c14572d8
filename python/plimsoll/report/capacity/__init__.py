"""The page of a load line."""
