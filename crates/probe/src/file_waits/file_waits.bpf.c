// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each time that a thread of a load on files, or of a server, is off its CPU: from when to when, in which place in the kernel it sleeps, and
 * how long it waits for a CPU after that.
 *
 * The fact that constrains it: an operation on a file may take half a microsecond, so nothing runs at its begin or end. They
 * are in the load's own record; a thread that never leaves its CPU costs nothing.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "file_waits.h"
#include "../bpf/counters.bpf.h"
#include "../bpf/family.bpf.h"
#include "../bpf/stack.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

volatile struct target target SEC(".data.target");

LOSSES_OF_EACH_CPU(LOST)

COUNTERS_OF_EACH_CPU(counters, 1, COUNTERS);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} waits SEC(".maps");

/* A stack's number, from 1 on. All room is there from the start, for memory cannot be had at a switch. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PLACES);
	__type(key, struct stack);
	__type(value, u32);
} places SEC(".maps");

u32 places_known;

struct state {
	struct wait wait; /* the last one, until the thread leaves its CPU again */
	u64 run_delay; /* the kernel's own sum, when it left */
	u64 clock_behind; /* by how much the scheduler's clock is behind; 0 if that is not known yet */
	u64 last_behind; /* as the last arrival alone tells it */
	bool is_off, is_pending;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} states SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct___of_a_thread {
	struct sched_entity se;
	unsigned long nvcsw, nivcsw;
	char comm[16];
};

#pragma clang attribute pop

#define NO_SESSION 0xffffffffU

/* The engine calls a session's thread "load" and its number. */
static __always_inline u32 session_of(struct task_struct *task)
{
	struct task_struct___of_a_thread *thread = (void *)task;
	char name[16];
	u32 number = 0;

	BPF_CORE_READ_INTO(&name, thread, comm);
	if (name[0] != 'l' || name[1] != 'o' || name[2] != 'a' || name[3] != 'd' || name[4] < '0' || name[4] > '9')
		return NO_SESSION;
	for (u32 i = 4; i < 14; i++) {
		if (name[i] < '0' || name[i] > '9')
			break;
		number = 10 * number + (name[i] - '0');
	}
	return number;
}

static __always_inline bool is_watched(struct task_struct *task)
{
	if (target.process)
		return task->tgid == target.process;
	return is_of_family(task, target.server) || is_of_family(task, target.program);
}

static __always_inline u32 place_of(void *context)
{
	struct stack *stack = stack_of(context);
	u32 number, *known;

	if (!stack)
		return UNKNOWN_PLACE;
	known = bpf_map_lookup_elem(&places, stack);
	if (known)
		return *known;
	number = __sync_fetch_and_add(&places_known, 1) + 1;
	if (!bpf_map_update_elem(&places, stack, &number, BPF_NOEXIST))
		return number;
	known = bpf_map_lookup_elem(&places, stack);
	if (known)
		return *known;
	lose(NO_PLACE);
	return UNKNOWN_PLACE;
}

/* What of the last wait was waiting for a CPU is known by now: the kernel sums it up once the thread is on one. */
static __always_inline void hand_over(struct state *state, struct task_struct *task)
{
	u64 off = state->wait.back - state->wait.left, delay = task->sched_info.run_delay - state->run_delay;

	if (!state->is_pending)
		return;
	state->is_pending = false;
	state->wait.run_queue = state->wait.place && delay < off ? delay : off;
	if (bpf_ringbuf_output(&waits, &state->wait, sizeof(state->wait), BPF_RB_NO_WAKEUP))
		lose(NO_ROOM);
}

/* It runs, so if it is not known to, it was switched to unseen: some kernels do not tell of a switch away from certain tasks. */
static __always_inline void catch_up(struct state *state, struct task_struct *task, u64 now)
{
	u64 arrival = task->sched_info.last_arrival, behind, *counts;
	u32 zero = 0;

	if (!state->is_off) {
		if (state->is_pending) {
			/* The smaller of two: one may have been told of late. */
			behind = state->wait.back - arrival;
			state->clock_behind = state->last_behind && state->last_behind < behind ? state->last_behind : behind;
			state->last_behind = behind;
		}
		return;
	}
	arrival += state->clock_behind;
	state->is_off = false;
	state->is_pending = true;
	state->wait.back = state->clock_behind && arrival > state->wait.left && arrival < now ? arrival : now;
	counts = bpf_map_lookup_elem(&counters, &zero);
	if (counts)
		counts[ARRIVALS_UNSEEN]++;
}

static __always_inline void leaves(void *context, bool preempted, struct task_struct *task, u64 now)
{
	struct task_struct___of_a_thread *thread = (void *)task;
	u32 session = target.process ? session_of(task) : task->pid, running;
	struct state *state;

	if (session == NO_SESSION)
		return;
	state = bpf_task_storage_get(&states, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		lose(NO_STORAGE);
		return;
	}
	catch_up(state, task, now);
	hand_over(state, task);
	running = task->__state;
	state->wait.left = now;
	state->wait.runtime = thread->se.sum_exec_runtime;
	state->wait.switches = thread->nvcsw + thread->nivcsw;
	state->wait.session = session;
	state->wait.process = task->tgid;
	state->wait.of_program = target.program != target.server && is_of_family(task, target.program);
	state->run_delay = task->sched_info.run_delay;
	/* Woken already, on another CPU, while it was on its way out: it is runnable. */
	state->wait.place = preempted || !running || running == TASK_WAKING ? 0 : place_of(context);
	state->is_off = true;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *from, struct task_struct *to)
{
	bool leaving = is_watched(from), coming = is_watched(to);
	struct state *state;
	u64 now;

	if (!leaving && !coming)
		return 0;
	now = bpf_ktime_get_ns();
	if (leaving)
		leaves(ctx, preempted, from, now);
	if (coming) {
		state = bpf_task_storage_get(&states, to, 0, 0);
		if (state && state->is_off) {
			state->is_off = false;
			state->is_pending = true;
			state->wait.back = now;
		}
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct state *state;

	if (!is_watched(task))
		return 0;
	state = bpf_task_storage_get(&states, task, 0, 0);
	if (state)
		hand_over(state, task);
	return 0;
}
