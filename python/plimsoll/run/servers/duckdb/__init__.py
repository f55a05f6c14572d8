"""DuckDB: the server that lives in the process of its driver."""
