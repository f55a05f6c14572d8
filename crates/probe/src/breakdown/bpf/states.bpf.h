/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a process of the server comes to a CPU and leaves it: each nanosecond goes to the state that it was in. */
#ifndef PLIMSOLL_STATES_BPF_H
#define PLIMSOLL_STATES_BPF_H

#include "slices.bpf.h"
#include "transactions.bpf.h"
#include "waits.bpf.h"

/* The interval in which it was blocked is over. */
static __always_inline void unblocked(struct backend *backend, u64 now)
{
	if (backend->bucket != CLIENT || backend->in_block) {
		charge(backend, now - backend->since, backend->waker);
	} else {
		begin(backend, now, OPEN);
		backend->open = backend->has_client = true;
		set_busy(backend, true);
	}
	backend->waker = 0;
}

/*
 * How long it has waited for a CPU since it left one. The kernel sums that up at each arrival, and keeps when a task was queued
 * until it arrives: so nobody has to be asked at the wake-up, where the task's memory is on another CPU.
 */
static __always_inline u64 delay_of(struct backend *backend, struct task_struct *task, u64 now)
{
	u64 delay = task->sched_info.run_delay - backend->run_delay, queued = task->sched_info.last_queued;

	if (queued && backend->clock_behind) {
		queued += backend->clock_behind + target.slew;
		delay += now > queued ? now - queued : 0;
	}
	return delay;
}

/* Its client's next transaction begins when the slice has ended. */
static __always_inline bool begins_late(struct backend *backend, u64 begin)
{
	return is_closing() && backend->bucket == CLIENT && !backend->in_block && begin > target.until;
}

/* It got a CPU. */
static __always_inline void arrives(struct backend *backend, struct task_struct *task, u64 now)
{
	u64 waited = now - backend->since, delay;

	if (backend->state == BLOCKED) {
		delay = delay_of(backend, task, now);
		waited = delay < waited ? delay : waited;
		if (begins_late(backend, now - waited)) {
			pass_over(backend);
			return;
		}
		unblocked(backend, now - waited);
	}
	backend->transaction.run_queue += waited;
	backend->since = backend->came = now;
	backend->state = RUNNING;
}

/* It is seen for the first time, or for the first time in this slice. */
static __always_inline bool starts(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->state == UNSEEN) {
		begin_anew(backend, task, now, 0);
		return true;
	}
	if (backend->state != RESUMED)
		return false;
	backend->since = now;
	backend->came = 0;
	backend->state = RUNNING;
	return true;
}

/* By how much the scheduler's clock is behind, as some process found; 0 if none has yet. */
u64 clock_behind;

/* When a task that runs got its CPU, as the kernel keeps it by the scheduler's clock; no earlier than `least`. */
static __always_inline u64 arrival_of(struct task_struct *task, u64 behind, u64 least, u64 now)
{
	u64 arrival = task->sched_info.last_arrival + behind + target.slew;

	if (!behind || arrival < least)
		arrival = least;
	return arrival < now ? arrival : now;
}

/*
 * The process runs, so if it is not known to, it was switched to unseen: some kernels do not tell of a switch away from
 * certain tasks.
 */
static __always_inline void catch_up(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->state == RUNNING || starts(backend, task, now))
		return;
	count(ARRIVALS_UNSEEN);
	arrives(backend, task, arrival_of(task, backend->clock_behind, backend->since, now));
}

/* The same of one that answers and was never seen: what it answers counts from when it got its CPU. */
static __always_inline void appears(struct backend *backend, struct task_struct *task, u64 now)
{
	u64 behind = clock_behind;

	count(ARRIVALS_UNSEEN);
	begin_anew(backend, task, behind ? arrival_of(task, behind, 0, now) : now, 0);
}

/* Up to now it was on a CPU; false if it is not followed any more. */
static __always_inline bool charge_cpu_until(struct backend *backend, struct task_struct *task, u64 now)
{
	catch_up(backend, task, now);
	if (backend->state == PASSED_OVER)
		return false;
	backend->transaction.cpu += now - backend->since;
	backend->since = now;
	return true;
}

static __always_inline void switched_in(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->state == RUNNING) {
		/* That it left was not told of. */
		count(ARRIVALS_UNSEEN);
		charge_cpu_until(backend, task, now);
	} else if (!starts(backend, task, now)) {
		arrives(backend, task, now);
	}
	backend->came = now;
}

/*
 * It goes back to waiting for its client, outside of a block. What it did since its last answer was no transaction: the end of
 * the work on that one, or it was woken for something else, or by a part of a message. But if the connection is encrypted, and
 * something was sent, this is where the transaction ends as far as can be told.
 */
static __always_inline void waits_again(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->open && backend->sent && backend->encrypted) {
		backend->transaction.requests++;
		end(backend, task, now, UNREADABLE_END);
	} else {
		backend->after += backend->transaction.cpu;
	}
	backend->open = false;
	backend->transaction.flags = 0;
	set_busy(backend, false);
}

static __always_inline void switched_out(void *context, struct backend *backend, struct task_struct *task, bool preempted, u64 now)
{
	u32 state = task->__state;

	if (state & TASK_DEAD || !charge_cpu_until(backend, task, now))
		return;
	/* Woken already, on another CPU, while it was on its way out. */
	if (preempted || !state || state == TASK_WAKING) {
		backend->state = RUNNABLE;
		return;
	}
	backend->state = BLOCKED;
	backend->run_delay = task->sched_info.run_delay;
	if (backend->came) {
		backend->clock_behind = backend->came - task->sched_info.last_arrival - target.slew;
		if (!clock_behind)
			clock_behind = backend->clock_behind;
	}
	tell(context, backend, task, state);
	if (backend->bucket == CLIENT && !backend->in_block)
		waits_again(backend, task, now);
}

#endif
