"""A run on a guest kernel: the front on the host supervises, and inside the guest the same runner carries trials out.

The fact that constrains it: what is told across is lines, and what is kept is files of the record; neither may be lost
when the guest is killed, so each finished trial is on the host before it is told of.
"""
