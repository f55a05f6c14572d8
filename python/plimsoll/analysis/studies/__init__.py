"""What the original studies asked, in their terms: clients, scaling over CPUs, scaling over memory."""
