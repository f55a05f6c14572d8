"""The decision-support workload: its metrics, plans, answers, and the drift of repeated tests."""
