"""Calls of NFS in sentences."""
