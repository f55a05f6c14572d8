"""A guest kernel: user-mode-linux as it is installed, what it has, and one guest booted, spoken to and ended.

The constraint: a guest is processes of the host's. Whatever becomes of the front, none of them may be left, and nothing
of the host's files may be written but the record.
"""
