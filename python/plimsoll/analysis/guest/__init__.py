"""A run on a guest kernel: what its verdict cannot say, and how the guest's clock stood to the host's."""
