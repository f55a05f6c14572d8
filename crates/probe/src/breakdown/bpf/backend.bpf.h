/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is known of a process of the server, and who is one. */
#ifndef PLIMSOLL_BACKEND_BPF_H
#define PLIMSOLL_BACKEND_BPF_H

#include "../../bpf/counters.bpf.h"
#include "../../bpf/family.bpf.h"

const volatile struct settings settings SEC(".rodata.settings");

volatile struct target target SEC(".data.target");

COUNTERS_OF_EACH_CPU(counters, 1, COUNTERS);
COUNTERS_OF_EACH_CPU(losses, 1, LOST);

/* Only its own CPU writes it, when the process leaves and when it comes. */
enum state {
	UNSEEN,
	RUNNING,
	RUNNABLE,
	BLOCKED,
	RESUMED, /* of no client; what it did since the slice before is not known */
	PASSED_OVER, /* of a client whose transaction began outside of a slice */
};

/* What the present, or the last, state of a process is. What every switch touches comes first. */
struct backend {
	u64 since; /* when the state began */
	u32 state;
	u32 event;
	u32 waker; /* of the wait that ends next; other CPUs write it */
	u8 bucket, cause;
	bool open; /* a transaction is under way, as far as can be told before anything is answered */
	bool in_block; /* it is, for certain: the server has said that a block is open */
	bool busy; /* as counted */
	bool sent; /* something was sent since the transaction began */
	bool encrypted; /* the connection, so that ends of answers cannot be read */
	bool throttled; /* about to pause for having dirtied pages */
	bool reclaiming;
	bool has_client;
	bool found_waiting; /* for its client, in this slice: it may have been within a block */
	u8 looks; /* at wait events that were thought to be known */
	u32 client_socket; /* its descriptor, plus one, as far as it was answered */
	u32 slice; /* the last one in which it was seen */
	u32 client_instance; /* descriptor of the epoll instance on which it waits for its client, plus one */
	u32 *wait_event; /* where its wait event is, as far as it was found */
	u64 read_bytes; /* asked of devices until the wait for data before */
	u64 file_fault; /* the number of its last page fault on a file */
	u64 run_delay; /* the kernel's own sum of waiting for a CPU, when it last left one */
	u64 came; /* when it last came to a CPU, or 0 */
	u64 clock_behind; /* by how much the scheduler's clock is behind, but for the slew; 0 if that is not known yet */
	u64 user, system; /* the task's own, when the transaction before ended */
	u64 after; /* on the CPU since the last answer, outside of transactions */
	u64 batched; /* when the first transaction of the batch ended */
	u64 batched_requests;
	/* The agent reads these three from the end. */
	u64 batch_bytes;
	u8 batch[BATCH_BYTES]; /* transactions that have ended, one behind the other */
	struct transaction transaction;
};

/* The agent reads these where present.rs has them. */
_Static_assert(__builtin_offsetof(struct backend, since) == 0 && __builtin_offsetof(struct backend, state) == 8, "present.rs");
_Static_assert(__builtin_offsetof(struct backend, event) == 12 && __builtin_offsetof(struct backend, bucket) == 20, "present.rs");
_Static_assert(__builtin_offsetof(struct backend, cause) == 21 && __builtin_offsetof(struct backend, in_block) == 23, "present.rs");
_Static_assert(__builtin_offsetof(struct backend, has_client) == 29 && __builtin_offsetof(struct backend, slice) == 36, "present.rs");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct backend);
} backends SEC(".maps");

static __always_inline void add(enum counter counter, u64 number)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(&counters, &zero);

	if (counts)
		counts[counter] += number;
}

static __always_inline void count(enum counter counter)
{
	add(counter, 1);
}

static __always_inline void lost(enum lost what, u64 number)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(&losses, &zero);

	if (counts)
		counts[what] += number;
}

static __always_inline struct backend *known(struct task_struct *task)
{
	return bpf_task_storage_get(&backends, task, 0, 0);
}

static __always_inline struct backend *known_from_now(struct task_struct *task)
{
	struct backend *backend = bpf_task_storage_get(&backends, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!backend)
		lost(NO_STORAGE, 1);
	return backend;
}

#endif
