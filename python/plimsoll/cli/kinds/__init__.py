"""The kinds of runs: what the verbs that take a run's folder do with each."""
