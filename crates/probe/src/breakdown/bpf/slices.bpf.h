/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whole transactions are followed that begin within a slice of time, to their ends; between slices most programs are detached.
 *
 * The fact that constrains it: what happens between slices is not seen. So nothing that is kept of a process is believed in
 * the next one, and a backend is followed again from the end of one of its answers, or if it is found waiting for its client.
 */
#ifndef PLIMSOLL_SLICES_BPF_H
#define PLIMSOLL_SLICES_BPF_H

#include "waits.bpf.h"

static __always_inline bool is_between_slices(void)
{
	return settings.in_slices && target.phase == CLOSED;
}

static __always_inline bool is_closing(void)
{
	return settings.in_slices && target.phase == CLOSING;
}

/* The agent waits for the busy ones before it closes a slice. */
static __always_inline void set_busy(struct backend *backend, bool busy)
{
	if (!settings.in_slices || backend->busy == busy)
		return;
	backend->busy = busy;
	add(BUSY, busy ? 1 : -1);
}

static __always_inline void pass_over(struct backend *backend)
{
	set_busy(backend, false);
	backend->state = PASSED_OVER;
}

static __always_inline bool waits_for_client(struct backend *backend, struct task_struct *task)
{
	struct pt_regs *regs = registers_of(task);
	u32 call = call_in(regs);

	return (call == settings.wait_call || call == settings.other_wait_call) &&
	       first_argument(regs) + 1 == backend->client_instance;
}

/* What was known of a backend that wakes up is known again if it has waited for its client: nothing. */
static __always_inline void resume(struct backend *backend, struct task_struct *task, bool comes)
{
	backend->throttled = backend->reclaiming = backend->open = backend->in_block = backend->busy = false;
	backend->waker = 0;
	backend->found_waiting = comes && backend->has_client && waits_for_client(backend, task);
	if (backend->found_waiting) {
		backend->state = BLOCKED;
		backend->bucket = CLIENT;
		backend->since = 0;
		backend->run_delay = task->sched_info.run_delay;
	} else if (backend->has_client) {
		backend->state = PASSED_OVER;
	} else if (backend->state != UNSEEN) {
		backend->state = RESUMED;
	}
}

/* Whether what it does now is to be known. */
static __always_inline bool is_followed(struct backend *backend, struct task_struct *task, bool comes)
{
	if (!settings.in_slices)
		return true;
	if (backend->slice != target.slice) {
		backend->slice = target.slice;
		resume(backend, task, comes);
	}
	return backend->state != PASSED_OVER;
}

#endif
