/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Waits for the kernel's own locks: from the begin to the end that the kernel tells, by the lock's kind and who wanted it. */
#ifndef PLIMSOLL_CONTENTION_BPF_H
#define PLIMSOLL_CONTENTION_BPF_H

struct wanted {
	u64 lock;
	u32 task;
	u32 unused;
};

struct waiting {
	u64 since;
	struct site site;
};

/* All room is there from the start: this may run where memory cannot be had. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct wanted);
	__type(value, struct waiting);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, SITES);
	__type(key, struct site);
	__type(value, struct waited);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct waiting);
} begun SEC(".maps");

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wanted wanted = { .lock = (u64)lock };
	struct waiting *waiting;
	u32 zero = 0;

	if (!is_watched(task))
		return 0;
	wanted.task = task->pid;
	waiting = bpf_map_lookup_elem(&waits, &wanted);
	if (waiting) {
		/* It has waited on a CPU first, and leaves it now. */
		waiting->site.flags = flags;
		return 0;
	}
	waiting = bpf_map_lookup_elem(&begun, &zero);
	if (!waiting)
		return 0;
	__builtin_memset(waiting, 0, sizeof(*waiting));
	waiting->site.flags = flags;
	bpf_get_stack(ctx, waiting->site.callers, sizeof(waiting->site.callers), OWN_FRAMES);
	/* Last, so that what this takes is in no wait. */
	waiting->since = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waits, &wanted, waiting, BPF_NOEXIST))
		count(&losses, NO_ROOM_FOR_WAIT);
	return 0;
}

static __always_inline void add_wait(struct site *site, u64 ns)
{
	struct waited *known = bpf_map_lookup_elem(&sites, site);
	struct waited first = { .count = 1, .total_ns = ns, .max_ns = ns };

	if (!known) {
		if (bpf_map_update_elem(&sites, site, &first, BPF_NOEXIST))
			count(&losses, NO_ROOM_FOR_SITE);
		return;
	}
	known->count++;
	known->total_ns += ns;
	if (ns > known->max_ns)
		known->max_ns = ns;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wanted wanted = { .lock = (u64)lock };
	struct waiting *waiting;

	if (!is_watched(task))
		return 0;
	wanted.task = task->pid;
	waiting = bpf_map_lookup_elem(&waits, &wanted);
	if (!waiting)
		return 0;
	add_wait(&waiting->site, bpf_ktime_get_ns() - waiting->since);
	bpf_map_delete_elem(&waits, &wanted);
	return 0;
}

#endif
