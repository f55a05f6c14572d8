"""A run on a guest kernel, in words."""
