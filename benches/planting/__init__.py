"""Faults planted in a soak at work, and whether it has told of each: what benches/soak_with_faults.py is made of."""
