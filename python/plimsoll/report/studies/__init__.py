"""The original studies' tables and figures."""
