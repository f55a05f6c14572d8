/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a process of the server waits for. */
#ifndef PLIMSOLL_WAITS_BPF_H
#define PLIMSOLL_WAITS_BPF_H

#include "backend.bpf.h"

static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

/*
 * The pointer moves once in a backend's life, when it joins the shared memory, and what it points at before is never set: so
 * it is read again only if no wait event is found where it led.
 */
static __always_inline bool read_event(struct backend *backend, u32 *event)
{
	if (!target.wait_pointer)
		return true;
	if (backend->wait_event && !bpf_probe_read_user(event, sizeof(*event), backend->wait_event) && *event)
		return true;
	return !bpf_probe_read_user(&backend->wait_event, sizeof(backend->wait_event), (void *)target.wait_pointer) &&
	       !bpf_probe_read_user(event, sizeof(*event), backend->wait_event);
}

/*
 * A backend has one epoll instance for its client and others for everything else, so which it waits on tells whether it waits
 * for its client. The memory in which it says so is cold by then, and reading it would take as long as all the rest; it is
 * looked at now and then, and a wrong guess is counted.
 */
static __always_inline bool find_event(struct backend *backend, struct task_struct *task, u32 *event)
{
	struct pt_regs *regs = registers_of(task);
	u32 call = call_in(regs), instance = 0;
	bool guessed;

	if (call == settings.wait_call || call == settings.other_wait_call)
		instance = first_argument(regs) + 1;
	/* Without wait events a backend that has answered, and waits, waits for its client. */
	guessed = instance && (target.wait_pointer ? instance == backend->client_instance : backend->answered);
	if (guessed && (!target.wait_pointer || backend->looks++ & 63)) {
		*event = settings.client_read;
		return true;
	}
	if (!read_event(backend, event))
		return false;
	if (guessed && *event != settings.client_read)
		count(WRONG_GUESSES);
	if (*event == settings.client_read)
		backend->client_instance = instance;
	return true;
}

static __always_inline u8 bucket_of(u32 event)
{
	if (event == settings.client_read)
		return CLIENT;
	if (event == settings.wal_write_lock)
		return WAL_WAIT;
	if (event == settings.client_write)
		return NETWORK_SEND;
	if (event >> 24 == IO_CLASS)
		return settings.io_bucket[event & (IO_EVENTS - 1)];
	return settings.class_bucket[(event >> 24) & (CLASSES - 1)];
}

/* Whether it has asked the device since it last waited for data. */
static __always_inline u8 cause_of_read(struct backend *backend, struct task_struct *task)
{
	u64 before = backend->read_bytes;

	backend->read_bytes = task->ioac.read_bytes;
	return backend->read_bytes != before ? OWN_READ : ON_ITS_WAY;
}

/* What a process that leaves the CPU to sleep waits for. */
static __always_inline void classify(struct backend *backend, struct task_struct *task, u32 state)
{
	bool throttled = backend->throttled && state & TASK_WAKEKILL;
	u32 event = 0, call;

	backend->throttled = false;
	backend->cause = CAUSE_NONE;
	if (!find_event(backend, task, &event)) {
		backend->transaction.flags |= UNKNOWN_EVENT;
		count(UNKNOWN_EVENTS);
		event = 0;
	}
	if (throttled || backend->reclaiming) {
		backend->bucket = THROTTLE;
	} else if (event) {
		backend->bucket = bucket_of(event);
		if (backend->bucket == DATA_READ)
			backend->cause = cause_of_read(backend, task);
	} else {
		call = call_in(registers_of(task));
		backend->bucket = call == (u32)-1 && BPF_CORE_READ_BITFIELD(task, in_iowait) ? SWAP_IN : UNATTRIBUTED;
		event = SYSTEM_CALL | (call & 0xffffff);
	}
	backend->event = event;
}

#endif
