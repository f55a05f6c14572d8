"""What the kernel itself did during a run: its log, and what it holds."""
