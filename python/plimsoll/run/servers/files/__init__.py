"""Files of a folder: there is no server, and the load itself is what is limited and watched."""
