"""What run.json says of a run that looked for a load line. Here so that asking for it loads no statistics."""

KIND = "capacity"
