"""Packet captures of NFS that somebody took: calls by operation, over time, by kind of file."""
