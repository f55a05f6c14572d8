"""Web serving: what the connections got, judged as the benchmark that it is like does."""
