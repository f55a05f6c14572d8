"""Where each transaction's time went: the rows of the probe joined with the client's, by trial and treatment."""
