"""What the other probes counted, one file a probe."""
