"""The decision-support workload's part of the page."""
