"""One file a workload: its keys, what it asks of the agent, how large it is, and what a reader has to know."""
