"""Folders of ours: where a trial works, at a place the user names, beside another's server; copies of data sets."""
