"""The verbs: options are read, and a module that does the work is called, which is imported then."""
