"""Kernels of this machine that are booted once: found, chosen for the next boot alone, and the choice taken back."""
