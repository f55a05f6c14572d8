"""What is said of the kernel itself."""
