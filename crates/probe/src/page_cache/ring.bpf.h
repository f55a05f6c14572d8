/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reads by io_uring. The kernel tries each as often as it takes: without waiting when it is submitted, which starts the
 * read-ahead, and again when pages have come, with what is left of it then. mm_filemap_get_pages shows none of the tries
 * that get the first pages only, and shows long reads in several pieces: so what a read asks for is taken from its
 * submission, once. Several may be under way in one system call; whose a page is that comes, its place tells.
 */
#ifndef PLIMSOLL_RING_BPF_H
#define PLIMSOLL_RING_BPF_H

#include "calls.bpf.h"

/* Part of io_uring's interface. */
#define IORING_OP_READV 1
#define IORING_OP_WRITEV 2
#define IORING_OP_READ_FIXED 4
#define IORING_OP_WRITE_FIXED 5
#define IORING_OP_READ 22
#define IORING_OP_WRITE 23
#define IOSQE_FIXED_FILE 1

/* What a task has submitted. */
struct ring {
	u64 told;
	bool untold; /* a read did not say of which file, or how much: all are taken from mm_filemap_get_pages from then on */
	bool reads; /* the newest of all was a read that told */
	struct reading newest[RING_READS]; /* of those told */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ring);
} rings SEC(".maps");

/*
 * The ring of a task that may be going on with what it submitted, in whatever system call it is; NULL if it cannot, or if
 * not all it submitted is known.
 */
static __always_inline struct ring *ring_of(struct task_struct *task, u32 context)
{
	struct ring *ring;

	if (!settings.ring_reads_are_seen)
		return NULL;
	if (context != CONTEXT_RING && context != CONTEXT_OTHER && context != CONTEXT_FAULT)
		return NULL;
	ring = bpf_task_storage_get(&rings, task, 0, 0);
	return ring && !ring->untold ? ring : NULL;
}

/* A kernel thread that does what others submitted. */
static __always_inline bool works_for_others(struct task_struct *task)
{
	return settings.ring_reads_are_seen && task->flags & PF_IO_WORKER && !bpf_task_storage_get(&rings, task, 0, 0);
}

static __always_inline void submits_read(struct task_struct *task, struct io_kiocb *request, u8 operation)
{
	struct ring *ring = bpf_task_storage_get(&rings, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct io_rw *asked = (struct io_rw *)request;
	u64 address = BPF_CORE_READ(asked, addr), length = BPF_CORE_READ(asked, len);
	s64 from = BPF_CORE_READ(asked, kiocb.ki_pos);
	struct place place = {};
	struct reading *read;
	struct inode *inode;
	struct file *file;
	u32 device;

	if (!ring) {
		lose(LOST_TASKS);
		return;
	}
	ring->reads = false;
	if (operation == IORING_OP_READV)
		length = bytes_of_vectors_at((void *)address, length, VECTORS);
	/* A registered file is not among the descriptors. */
	file = request->flags & IOSQE_FIXED_FILE ? NULL : file_of_descriptor(task, request->cqe.fd);
	if (!file || !length)
		ring->untold = true;
	if (ring->untold)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (!watched(device) || BPF_CORE_READ(file, f_flags) & settings.direct_flag)
		return;
	place.size = BPF_CORE_READ(inode, i_size);
	if (!find(&place, BPF_CORE_READ(inode, i_ino), device, inode, BPF_CORE_READ(inode, i_generation)))
		return;
	read = &ring->newest[ring->told++ % RING_READS];
	forget(read, place.inode);
	ask_for_bytes(read, &place, from < 0 ? BPF_CORE_READ(file, f_pos) : from, length);
	ring->reads = true;
}

static __always_inline void submits(struct task_struct *task, struct io_kiocb *request)
{
	u8 operation = request->opcode;
	struct ring *ring;

	switch (operation) {
	case IORING_OP_READV:
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		submits_read(task, request, operation);
		return;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITE_FIXED:
		ring = bpf_task_storage_get(&rings, task, 0, 0);
		if (ring)
			ring->reads = false;
	}
}

/* The newest read that asked for any of these pages. */
static __noinline struct reading *ring_read_of(struct ring *ring, u64 inode, u64 index, u64 end)
{
	for (u32 back = 1; back <= RING_READS; back++) {
		struct reading *read = &ring->newest[(ring->told - back) % RING_READS];

		if (read->inode == inode && index < read->end && read->first < end)
			return read;
	}
	return NULL;
}

/* Whether pages that came in were brought by a read that was submitted; then they are counted. */
static __always_inline bool added_by_ring(struct ring *ring, u32 context, struct place *place, u64 index, u64 end)
{
	struct reading *read = ring_read_of(ring, place->inode, index, end);

	if (read) {
		settle(read, place, index, end);
		return true;
	}
	if (context != CONTEXT_RING || !ring->reads)
		return false;
	count(place->counted, READAHEAD_PAGES, end - index);
	ahead_add(place, index, end);
	return true;
}

#endif
