"""The parts of probe_overhead.py: servers and loads, readings, arms and pairs, the rule that judges, the table."""
