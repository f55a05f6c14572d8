"""Named kernels as an experiment asks for them: their tables, and what a run that boots them cannot vary or use."""
