"""A guest kernel as an experiment asks for it: its table, and what a run on one cannot vary or use."""
