"""Soaks: rounds back to back on one server and one set of data, for days, through kills of any part."""
