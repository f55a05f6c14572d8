"""Runs that boot the kernels which an experiment names: in guests of QEMU, or this machine itself, again and again.

The fact that constrains it: two boots of one kernel differ (where memory lies, what is next to what), so a boot is a
level of noise of its own. Each block boots each kernel anew, in random order, and no trial shares its boot with a trial
of another block; what is compared are blocks, and so the noise between boots is in the intervals.
"""
