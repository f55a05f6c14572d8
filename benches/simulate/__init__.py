"""Worlds of known truth in which the analysis is judged: no server runs, the noise is made by a seed."""
