"""The page of an imported capture."""
