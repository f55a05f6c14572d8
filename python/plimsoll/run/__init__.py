"""A run: trials in their order on a machine that is arranged for each and put back after it, and their record."""
