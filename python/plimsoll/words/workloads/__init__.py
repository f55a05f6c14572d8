"""Sentences about what single workloads have to say."""
