/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a process waits for where the server does not tell its wait events: by the system call in which it blocks, and by what
 * the call's descriptor is.
 *
 * The fact that constrains it: a backend waits for its client, for locks of tables, for its workers and for time in the same
 * call, epoll_wait. So of an epoll instance is looked at whether the client's socket is in it, and for which event.
 */
#ifndef PLIMSOLL_BREAKDOWN_SYSTEM_CALLS_BPF_H
#define PLIMSOLL_BREAKDOWN_SYSTEM_CALLS_BPF_H

#include "backend.bpf.h"
#include "../../bpf/system_calls.bpf.h"

#define lose(what) lost(what, 1)
#include "../../folders/folders.bpf.h"

#define S_IFSOCK 0140000
#define SOCK_STREAM 1
#define READABLE 1
#define WRITABLE 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node {
	struct rb_node *rb_right, *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct eventpoll {
	struct rb_root_cached rbr;
};

struct epoll_filefd {
	struct file *file;
	int fd;
};

struct epoll_event {
	u32 events;
};

struct epitem {
	struct rb_node rbn;
	struct epoll_filefd ffd;
	struct epoll_event event;
};

struct socket {
	short type;
};

/* Of an epoll instance, or of a socket. */
struct file___with_data {
	void *private_data;
};

#pragma clang attribute pop

static __always_inline void *data_of(struct file *file)
{
	return BPF_CORE_READ((struct file___with_data *)file, private_data);
}

static __always_inline bool is_socket(struct file *file)
{
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/* Clients come by streams; the statistics of 13 and 14 do not. */
static __always_inline bool is_stream(struct file *file)
{
	struct socket *socket;

	if (!is_socket(file))
		return false;
	socket = data_of(file);
	return BPF_CORE_READ(socket, type) == SOCK_STREAM;
}

/* For which events of its client's socket an epoll instance is waited on, as far as this node of its tree tells. */
static __always_inline u32 events_of_client(struct backend *backend, struct rb_node *node)
{
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	int descriptor;

	if (!node)
		return 0;
	descriptor = BPF_CORE_READ(item, ffd.fd);
	/* Until it has answered any stream may be its client's. */
	if (backend->client_socket ? descriptor + 1 != backend->client_socket : !is_stream(BPF_CORE_READ(item, ffd.file)))
		return 0;
	return BPF_CORE_READ(item, event.events);
}

/* A backend waits for its client on an instance with three descriptors, whose tree is a node with one on each side. */
static __noinline u32 events_awaited(struct backend *backend, struct task_struct *task)
{
	struct file *file = file_of(task, 0);
	struct eventpoll *instance;
	struct rb_node *top;
	u32 events;

	if (!backend || !file)
		return 0;
	instance = data_of(file);
	top = BPF_CORE_READ(instance, rbr.rb_root.rb_node);
	if (!top)
		return 0;
	events = events_of_client(backend, top);
	events |= events_of_client(backend, BPF_CORE_READ(top, rb_left));
	events |= events_of_client(backend, BPF_CORE_READ(top, rb_right));
	return events;
}

/* What a descriptor of the task is. */
static __noinline u32 place_of(struct task_struct *task, u32 descriptor)
{
	struct file *file = file_of_descriptor(task, descriptor);
	struct file_entry *entry;
	struct file_key key = {};
	struct inode *inode;
	u32 device, kind;

	if (!file)
		return PLACE_NONE;
	inode = BPF_CORE_READ(file, f_inode);
	kind = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (kind == S_IFSOCK)
		return is_stream(file) ? PLACE_SOCKET : PLACE_ELSEWHERE;
	device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (kind != S_IFREG || !watched(device))
		return PLACE_ELSEWHERE;
	entry = look_up(&key, BPF_CORE_READ(inode, i_ino), inode, BPF_CORE_READ(inode, i_generation), device);
	return entry ? PLACE_OF_CLASS(entry->class) : PLACE_ELSEWHERE;
}

static __always_inline u8 bucket_of_way(u32 way, u32 place)
{
	return settings.way_bucket[(way & (WAYS - 1)) * PLACES + (place & (PLACES - 1))];
}

/* Of the fault that is under way: they are counted when they end. */
static __always_inline u64 number_of_fault(struct task_struct *task)
{
	return task->min_flt + task->maj_flt + 1;
}

/* Fills what a process waits for that is in no system call. */
static __always_inline void tell_by_fault(struct backend *backend, struct task_struct *task)
{
	bool of_file = backend->file_fault == number_of_fault(task);

	backend->event = SYSTEM_CALL | (of_file ? FILE_FAULT : NO_CALL);
	backend->bucket = !BPF_CORE_READ_BITFIELD(task, in_iowait) ? UNATTRIBUTED : of_file ? OTHER_WAIT : SWAP_IN;
}

/* Fills what the process waits for. */
static __always_inline void tell_by_call(struct backend *backend, struct task_struct *task)
{
	struct pt_regs *regs = registers_of(task);
	u32 call = call_in(regs), way = call < CALLS ? settings.call_way[call] : 0, place = PLACE_NONE, events;

	if (call == (u32)-1)
		return tell_by_fault(backend, task);
	if (way == WAY_EPOLL) {
		events = events_awaited(backend, task);
		way = events & WRITABLE ? WAY_WRITE : events & READABLE ? WAY_READ : WAY_PAUSE;
		place = events ? PLACE_SOCKET : PLACE_NONE;
		if (way == WAY_READ)
			backend->client_instance = first_argument(regs) + 1;
	} else if (way == WAY_READ || way == WAY_WRITE || way == WAY_SYNC) {
		place = place_of(task, first_argument(regs));
	}
	backend->event = SYSTEM_CALL | place << 16 | (call & 0xffff);
	backend->bucket = bucket_of_way(way, place);
}

#endif
