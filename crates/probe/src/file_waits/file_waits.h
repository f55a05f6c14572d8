/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs and the agent share: layouts are those of records.rs. */
#ifndef PLIMSOLL_FILE_WAITS_H
#define PLIMSOLL_FILE_WAITS_H

/* Places that a load blocks in; one has some dozens. */
#define PLACES 4096

/* A thread of the load was off its CPU. */
struct wait {
	u64 left, back;
	u64 run_queue; /* of that, waiting for a CPU: by the kernel's own sum */
	u64 runtime; /* on a CPU, all of the thread's life up to when it left: by the kernel's own sum */
	u64 switches; /* how often it has left one, by the kernel's own count */
	u32 session; /* of a server the thread */
	u32 place; /* its stack's number; 0: it was preempted; UNKNOWN_PLACE */
	u32 process;
	u32 of_program; /* of a server: of the program behind it, not of its own */
};
#define UNKNOWN_PLACE 0xffffffffU

enum counter {
	ARRIVALS_UNSEEN, /* that a thread got a CPU, which the kernel did not tell of: known from its own clock */
	COUNTERS,
};

enum lost {
	NO_ROOM, /* waits that the ring had no room for */
	NO_STORAGE, /* switches of threads that could not be remembered */
	NO_PLACE, /* waits whose stack there was no room for */
	LOST,
};

/* Changes while the programs run: first the self-test is watched, then the load, or a server and the program behind it, each with
 * its children. */
struct target {
	u32 process; /* of a load; 0 of a server */
	u32 server, program; /* the same process where there is no program */
	u32 unused;
};

#endif
