"""A soak in words."""
