"""What a run needs, what stands in its way, which levels fit this machine, and the plan as it is written down."""
