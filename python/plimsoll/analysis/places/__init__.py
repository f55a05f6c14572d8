"""Where the parts of a target lay: the layout as boxes over each other, and what each layout carried."""
