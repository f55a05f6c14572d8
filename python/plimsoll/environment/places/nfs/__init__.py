"""NFS: this kernel's own server and what it exports, mounts of it or of another, and what of their options is in force.

The constraint: a hard mount waits for its server for ever. So nothing is asked of a mount without a limit of time, and
the server is up again before anything that lies on it is put back.
"""
