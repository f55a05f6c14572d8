"""Where each transaction's time went, drawn."""
