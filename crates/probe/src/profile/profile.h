/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program and the agent share: layouts are those of records.rs. */
#ifndef PLIMSOLL_PROFILE_H
#define PLIMSOLL_PROFILE_H

#define KERNEL_FRAMES 64
#define STACK_BYTES 16384

/* One sample: where a process of the server was in the kernel, and what is needed to unwind where it was outside of it. */
struct sample {
	u64 ip, sp, fp, lr; /* when it was last outside of the kernel; lr only where calls leave it */
	u32 pid;
	u32 kernel_bytes; /* used of `kernel`; 0: it was outside of the kernel */
	u32 stack_bytes; /* of its stack, from sp upwards, that follow */
	u32 unused;
	u64 kernel[KERNEL_FRAMES];
	u8 stack[STACK_BYTES];
};

enum counter {
	OF_TARGET, /* samples that hit a process of the server */
	OF_OTHERS, /* that hit anything else but an idle CPU */
	COUNTERS,
};

enum lost {
	NO_ROOM, /* samples that the ring had no room for */
	NO_ROOM_FOR_WAIT, /* waits for locks, too many at once */
	NO_ROOM_FOR_SITE, /* waits for locks, in too many places */
	LOST,
};

#define SITES 8192
#define SITE_FRAMES 12
/* Of the program itself and of what calls it, before the lock's own. */
#define OWN_FRAMES 3

/* A kind of lock and who wanted it, innermost first. */
struct site {
	u32 flags; /* LCB_F_* */
	u32 unused;
	u64 callers[SITE_FRAMES];
};

struct waited {
	u64 count, total_ns, max_ns;
};

/* Changes while the program runs: first the self-test is watched, then the server. */
struct target {
	u32 parent; /* its children are watched */
	u32 itself; /* and itself, with all of its threads */
};

#endif
