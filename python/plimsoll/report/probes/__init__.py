"""What the other probes counted, drawn; one part of the page a probe."""
