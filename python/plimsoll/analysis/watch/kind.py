"""What run.json says of a run that watched a server's own load. Here so that asking for it loads no statistics."""

KIND = "breakdown"
