"""The page of two runs, or two treatments, compared."""
