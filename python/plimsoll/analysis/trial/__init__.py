"""What one trial says of its load: throughput, latency, lag, the generator, the machine around it."""
