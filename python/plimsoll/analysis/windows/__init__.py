"""Windows: servers that are up at once and served in turn; what their rates tell, and how surely."""
