"""Calls of NFS drawn: tables by treatment, and study S2's scatter by density."""
