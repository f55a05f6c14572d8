"""What run.json says of an imported capture. Here so that asking for it loads no statistics."""

KIND = "capture"
