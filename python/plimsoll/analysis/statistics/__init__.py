"""Methods: intervals, percentiles, tests and fits over arrays of numbers; nothing here knows a record."""
