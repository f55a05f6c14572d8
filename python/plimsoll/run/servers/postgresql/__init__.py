"""PostgreSQL: private servers of a trial of their own, and one that somebody else runs."""
