"""What was changed on the machine, written down before it is, and how each kind of change is put back."""
