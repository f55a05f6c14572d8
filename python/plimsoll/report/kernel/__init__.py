"""The section about the kernel itself."""
