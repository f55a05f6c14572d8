"""Looking for the load line: which rate is tried next, on which server, and how it is written down."""
