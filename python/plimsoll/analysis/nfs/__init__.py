"""Calls of NFS of a run's trials: by operation, file class and transaction, beside the client's own account."""
