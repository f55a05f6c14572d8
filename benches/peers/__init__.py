"""Plimsoll's generator and loader beside those of pgbench and sysbench, on one server, in pairs in random order."""
