"""The order-entry workload's part of the page."""
