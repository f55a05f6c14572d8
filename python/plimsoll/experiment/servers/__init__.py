"""What an experiment may ask of each kind of server: a file each, and the list of them."""
