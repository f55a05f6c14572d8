"""The page of a watch."""
