/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a process of the server waits for. */
#ifndef PLIMSOLL_WAITS_BPF_H
#define PLIMSOLL_WAITS_BPF_H

#include "../../bpf/functions.bpf.h"
#include "system_calls.bpf.h"

/*
 * The pointer moves once in a backend's life, when it joins the shared memory, and what it points at before is never set: so
 * it is read again only if no wait event is found where it led. Before that it may lead nowhere.
 */
static __always_inline bool read_event(struct backend *backend, u32 *event)
{
	u64 pointer;

	if (backend->wait_event && !bpf_probe_read_user(event, sizeof(*event), backend->wait_event) && *event)
		return true;
	if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)target.wait_pointer))
		return false;
	if (!pointer) {
		*event = 0;
		return true;
	}
	backend->wait_event = (u32 *)(pointer + target.wait_offset);
	return !bpf_probe_read_user(event, sizeof(*event), backend->wait_event);
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
	guessed = instance && instance == backend->client_instance;
	if (guessed && backend->looks++ & 63) {
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
	return settings.class_bucket[(event >> 24) & (WAIT_CLASSES - 1)];
}

/* Whether it has asked the device since it last waited for data. */
static __always_inline u8 cause_of_read(struct backend *backend, struct task_struct *task)
{
	u64 before = backend->read_bytes;

	backend->read_bytes = task->ioac.read_bytes;
	return backend->read_bytes != before ? OWN_READ : ON_ITS_WAY;
}

/* Fills what the process waits for. */
static __always_inline void tell_by_event(struct backend *backend, struct task_struct *task)
{
	u32 event = 0, call;

	if (!find_event(backend, task, &event)) {
		backend->transaction.flags |= UNKNOWN_EVENT;
		count(UNKNOWN_EVENTS);
		event = 0;
	}
	backend->event = event;
	backend->bucket = bucket_of(event);
	if (event)
		return;
	call = call_in(registers_of(task));
	if (call == (u32)-1)
		return tell_by_fault(backend, task);
	backend->event = SYSTEM_CALL | call;
	backend->bucket = UNATTRIBUTED;
}

/* What is asked of a server of NFS is waited for without being interrupted, as files are on any file system. */
static __always_inline void tell_of_nfs(void *context, struct backend *backend, u32 state)
{
	u32 told;

	if (!settings.on_nfs || !(state & TASK_UNINTERRUPTIBLE))
		return;
	told = told_by_stack(context);
	if (told)
		backend->cause = told;
}

/* What a process that leaves the CPU to sleep waits for. */
static __always_inline void tell(void *context, struct backend *backend, struct task_struct *task, u32 state)
{
	bool throttled = backend->throttled && state & TASK_WAKEKILL;

	backend->throttled = false;
	backend->cause = CAUSE_NONE;
	if (settings.by_system_call)
		tell_by_call(backend, task);
	else
		tell_by_event(backend, task);
	if (throttled || backend->reclaiming)
		backend->bucket = THROTTLE;
	else if (backend->bucket == DATA_READ)
		backend->cause = cause_of_read(backend, task);
	tell_of_nfs(context, backend, state);
}

#endif
