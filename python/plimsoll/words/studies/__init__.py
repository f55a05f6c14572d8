"""Sentences about the studies that have a design of their own."""
