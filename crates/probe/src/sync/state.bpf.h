/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a task that syncs is in, and how long a disk has been emptying its cache. */
#ifndef PLIMSOLL_SYNC_STATE_BPF_H
#define PLIMSOLL_SYNC_STATE_BPF_H

#include "../bpf/counters.bpf.h"
#include "../bpf/family.bpf.h"

const volatile struct settings settings SEC(".rodata.settings");

volatile struct target target SEC(".data.target");

/* Calls under way: while there are none, nothing is looked at. */
s64 under_way;

LOSSES_OF_EACH_CPU(LOSSES)

#include "../folders/folders.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ended SEC(".maps");

/* How long a disk has been emptying its cache. */
struct flushing {
	struct bpf_spin_lock lock;
	u32 requests;
	u64 since;
	u64 ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DEVICES);
	__type(key, u32);
	__type(value, struct flushing);
} flushes SEC(".maps");

/* What a task is in. */
struct state {
	bool active, off, wrote;
	bool woken_by_journal;
	bool ended_commit; /* of a thread of the journal: it has, and not begun another */
	u8 now; /* part that the present moment belongs to */
	u8 running; /* the same, once it is on a CPU */
	u8 blocked; /* once it leaves it for something */
	u8 later; /* for something else after that */
	u8 waited; /* part of the last interval off the CPU */
	u8 disk; /* place of the file system's */
	u64 since;
	u64 run_delay; /* the kernel's own sum of waiting for a CPU */
	u64 flushed; /* of the disk, when the task left the CPU */
	struct sync sync;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} states SEC(".maps");

/* The present call of a task, if it is in one. */
static __always_inline struct state *syncs(struct task_struct *task)
{
	struct state *state;

	if (!under_way)
		return NULL;
	state = bpf_task_storage_get(&states, task, 0, 0);
	return state && state->active ? state : NULL;
}

static __always_inline void add(struct state *state, u32 part, u64 ns)
{
	if (part < PARTS)
		state->sync.parts[part] += ns;
}

/* The interval that ends now belongs to the present part. */
static __always_inline void charge_until(struct state *state, u64 now)
{
	add(state, state->now, now - state->since);
	state->since = now;
}

/* What of the last wait was waiting for a CPU, which the kernel knows once the task is on it. */
static __always_inline void take_out_run_queue(struct state *state, struct task_struct *task)
{
	u64 delay = task->sched_info.run_delay - state->run_delay;
	u32 waited = state->waited;

	state->run_delay += delay;
	if (waited >= PARTS || waited == RUN_QUEUE)
		return;
	if (delay > state->sync.parts[waited])
		delay = state->sync.parts[waited];
	state->sync.parts[waited] -= delay;
	state->sync.parts[RUN_QUEUE] += delay;
	state->waited = PARTS;
}

/* From now on the task is at something else. */
static __always_inline void becomes(struct state *state, struct task_struct *task, u32 running)
{
	charge_until(state, bpf_ktime_get_ns());
	take_out_run_queue(state, task);
	state->now = state->running = running;
}

static __noinline u64 flushed_ns(u32 disk, u64 now)
{
	struct flushing *flushing = bpf_map_lookup_elem(&flushes, &disk);
	u64 ns;

	if (!flushing)
		return 0;
	bpf_spin_lock(&flushing->lock);
	ns = flushing->ns;
	if (flushing->requests && now > flushing->since)
		ns += now - flushing->since;
	bpf_spin_unlock(&flushing->lock);
	return ns;
}

#endif
