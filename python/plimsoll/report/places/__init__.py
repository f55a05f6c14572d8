"""Where the parts of a target lay, drawn; and what each layout carried."""
