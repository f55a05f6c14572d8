/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A transaction's begin and end, what it waits for in between, and how it is handed over. */
#ifndef PLIMSOLL_TRANSACTIONS_BPF_H
#define PLIMSOLL_TRANSACTIONS_BPF_H

#include "backend.bpf.h"

/* Room for seconds of the shortest transactions. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ended SEC(".maps");

static __always_inline u32 least(u64 ns)
{
	return ns < 0xffffffffULL ? ns : 0xffffffffU;
}

/* Keeps clang from folding two comparisons into one that older verifiers do not follow. */
#define barrier(variable) asm volatile("" : "+r"(variable))

static __always_inline void hand_over(struct backend *backend)
{
	u64 bytes = backend->batch_bytes;

	if (!bytes)
		return;
	backend->batch_bytes = 0;
	barrier(bytes);
	if (bytes > BATCH_BYTES)
		bytes = BATCH_BYTES;
	if (bpf_ringbuf_output(&ended, backend->batch, bytes, BPF_RB_NO_WAKEUP))
		lost(NO_ROOM, backend->batched_requests);
	backend->batched_requests = 0;
}

/* Several are handed over at once, because each time costs as much as all the rest of a short one. */
static __always_inline void add_to_batch(struct backend *backend)
{
	struct transaction *transaction = &backend->transaction, *copy;
	u64 at = backend->batch_bytes;

	if (at > BATCH_BYTES - sizeof(*copy) || transaction->ended - backend->batched > BATCH_NS) {
		hand_over(backend);
		at = 0;
	}
	if (!at)
		backend->batched = transaction->ended;
	copy = (struct transaction *)(backend->batch + at);
	__builtin_memcpy(copy, transaction, offsetof(struct transaction, wait));
	for (u32 i = 0; i < WAITS; i++) {
		if (i >= transaction->waits)
			break;
		copy->wait[i] = transaction->wait[i];
	}
	backend->batched_requests += transaction->requests;
	backend->batch_bytes = at + offsetof(struct transaction, wait) + transaction->waits * sizeof(struct wait);
}

/* A transaction may begin here: nothing is summed up yet. */
static __always_inline void begin(struct backend *backend, u64 now, u16 flags)
{
	struct transaction *transaction = &backend->transaction;

	transaction->arrived = now;
	transaction->cpu = transaction->run_queue = 0;
	transaction->waits = 0;
	transaction->requests = 0;
	transaction->one_in = target.one_in;
	transaction->flags = flags;
	backend->sent = false;
}

/* What was before is not looked at. */
static __always_inline void begin_anew(struct backend *backend, struct task_struct *task, u64 now, u16 flags)
{
	begin(backend, now, flags);
	backend->user = task->utime;
	backend->system = task->stime;
	backend->read_bytes = task->ioac.read_bytes;
	backend->since = now;
	backend->came = 0;
	backend->state = RUNNING;
}

/* The transaction ends now; its CPU time is up to date. */
static __noinline int end(struct backend *backend, struct task_struct *task, u64 now, u32 flags)
{
	struct transaction *transaction;
	u64 user, system;

	if (!backend || !task)
		return 0;
	user = task->utime;
	system = task->stime;
	transaction = &backend->transaction;
	transaction->pid = task->tgid;
	transaction->flags = (transaction->flags & ~OPEN) | flags;
	transaction->ended = now;
	transaction->user = least(user - backend->user);
	transaction->system = least(system - backend->system);
	transaction->after = least(backend->after);
	backend->user = user;
	backend->system = system;
	backend->after = 0;
	backend->open = backend->in_block = backend->found_waiting = false;
	add_to_batch(backend);
	return 0;
}

/* It was blocked for so long. */
static __always_inline void charge(struct backend *backend, u64 ns, u32 waker)
{
	struct transaction *transaction = &backend->transaction;
	struct wait *wait = NULL;
	u32 place;

	for (place = 0; place < WAITS - 1; place++) {
		wait = &transaction->wait[place];
		if (place >= transaction->waits)
			break;
		if (wait->event == backend->event && wait->bucket == backend->bucket && wait->cause == backend->cause)
			goto found;
	}
	wait = &transaction->wait[place];
	if (place == WAITS - 1 && transaction->waits == WAITS)
		goto found;
	wait->ns = 0;
	wait->count = 0;
	wait->event = place == WAITS - 1 ? 0 : backend->event;
	wait->bucket = place == WAITS - 1 ? OTHER_WAIT : backend->bucket;
	wait->cause = place == WAITS - 1 ? CAUSE_NONE : backend->cause;
	transaction->waits = place + 1;
	if (place == WAITS - 1)
		transaction->flags |= CUT;
found:
	wait->ns += ns;
	wait->waker = waker;
	wait->count++;
}

#endif
