"""The section of a page whose run was on a guest kernel."""
