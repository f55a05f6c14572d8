"""What run.json says of a soak. Here so that asking for it loads no statistics."""

KIND = "soak"
