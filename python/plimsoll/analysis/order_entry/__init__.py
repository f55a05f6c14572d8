"""The order-entry workload: its mix, its response times, and the ranges that clause 5 of TPC-C states."""
