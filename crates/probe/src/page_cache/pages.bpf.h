/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pages that are asked for, come into the page cache and leave it: by a page fault, by a read, ahead of it, or otherwise. */
#ifndef PLIMSOLL_PAGE_CACHE_PAGES_BPF_H
#define PLIMSOLL_PAGE_CACHE_PAGES_BPF_H

#include "ring.bpf.h"

/* A read has its pages from `first` to `last`; with `by_arguments` what it asked for stands in the call's arguments. */
static __always_inline void asked(struct task_struct *task, struct place *place, u64 id, u64 first, u64 last,
				  bool by_arguments)
{
	u32 context = context_of(task);
	u64 missed = 0, from;
	struct reading *read;
	struct call *call;

	if (ring_of(task, context))
		return;
	call = call_of(task);
	if (!call)
		return;
	read = begin(task, call, place, id, by_arguments);
	read->submitted = works_for_others(task);
	if (!read->known) {
		if (last >= end_of(place))
			last = end_of(place) - 1;
		if (!place->size || first > last)
			return;
		/*
		 * A call that does not count itself is a new one when it starts again or has another end. What is left of
		 * a long one, or of one that waits for its last pages, has the same end.
		 */
		if (read->counted && (first <= read->first || last != read->last_asked) &&
		    (context == CONTEXT_READ_LOOSE || context == CONTEXT_RING)) {
			read->counted = read->missed = read->waited = false;
			read->last_block = 0;
		}
		read->last_asked = last;
		/* A worker does one read after the other, and none brings pages before its own: those are its first part. */
		if (read->submitted && !read->counted && read->pieces && read->brought[0].first < first &&
		    first <= read->brought[0].end)
			first = read->brought[0].first;
		from = read->counted && read->end > first ? read->end : first;
		ask(read, place, first, last + 1);
		if (read->pieces) {
			missed = claim(read, place);
			from = read->first;
		}
		if (from < read->end)
			count(place->counted, AHEAD_USED_PAGES, used(place, from, read->end) - missed);
		if (missed)
			misses(read, place);
	}
	if (read->counted && !read->missed && !read->waited && call->waited_at == id + 1) {
		read->waited = true;
		count(place->counted, READ_CALLS_WAITED, 1);
	}
}

static __always_inline u64 faults_of(struct task_struct *task)
{
	return task->min_flt + task->maj_flt + 1;
}

/* Whether the task is in a fault on this file, whatever call it is in. */
static __always_inline bool faults(struct task_struct *task, struct call *call, struct place *place)
{
	return settings.faults_are_seen && call && call->fault.id == faults_of(task) && call->fault.inode == place->inode;
}

static __always_inline void added_by_fault(struct faulting *fault, struct place *place, u64 index, u64 end)
{
	u64 missed = index <= fault->index && fault->index < end;

	count(place->counted, FAULT_MISSED_PAGES, missed);
	count(place->counted, READAHEAD_PAGES, end - index - missed);
	if (missed) {
		ahead_add(place, index, fault->index);
		ahead_add(place, fault->index + 1, end);
	} else {
		ahead_add(place, index, end);
	}
}

static __always_inline void added_by_read(struct task_struct *task, struct call *call, struct place *place, u64 index,
					  u64 end)
{
	struct reading *read = &call->read;
	u64 id = task->ioac.syscr;

	/* Of another file than the one that is read: a fault in copying, on a kernel that does not show faults. */
	if (read->id == id + 1 && read->known && read->inode != place->inode) {
		count(place->counted, OTHER_PAGES, end - index);
		return;
	}
	read = begin(task, call, place, id, true);
	if (read->known)
		settle(read, place, index, end);
	else
		keep(read, place, index, end);
}

/* copy_file_range reads its first argument and writes its third. */
static __always_inline bool is_target(struct task_struct *task, struct place *place)
{
	struct file *target = file_of(task, 2);

	return target && BPF_CORE_READ(target, f_inode, i_ino) == place->inode;
}

static __always_inline void added(struct task_struct *task, struct place *place, u64 index, u64 pages)
{
	struct call *call = bpf_task_storage_get(&calls, task, 0, 0);
	u32 context = context_of(task);
	u64 end = index + pages;
	struct ring *ring;

	count(place->counted, ADDED_PAGES, pages);
	if (faults(task, call, place)) {
		added_by_fault(&call->fault, place, index, end);
		return;
	}
	ring = ring_of(task, context);
	if (ring && added_by_ring(ring, context, place, index, end))
		return;
	if (context == CONTEXT_COPY)
		context = is_target(task, place) ? CONTEXT_WRITE : CONTEXT_READ;
	switch (context) {
	case CONTEXT_READ:
	case CONTEXT_READ_LOOSE:
	case CONTEXT_RING:
		call = call_of(task);
		if (call)
			added_by_read(task, call, place, index, end);
		else
			count(place->counted, UNSETTLED_PAGES, pages);
		return;
	case CONTEXT_WRITE:
		count(place->counted, WRITE_PAGES, pages);
		return;
	case CONTEXT_PREFETCH:
		count(place->counted, PREFETCH_PAGES, pages);
		ahead_add(place, index, end);
		return;
	}
	count(place->counted, OTHER_PAGES, pages);
}

static __always_inline void deleted(struct task_struct *task, struct place *place, u64 index, u64 pages)
{
	count(place->counted, task->flags & PF_MEMALLOC ? EVICTED_PAGES : DROPPED_PAGES, pages);
	count(place->counted, AHEAD_EVICTED_PAGES, used(place, index, index + pages));
}

/* A fault asks for one page; fault-around, which has no page of its own, comes first when it comes. */
static __always_inline void faulted(struct task_struct *task, struct place *place, u64 first, u64 end, bool around)
{
	struct call *call = call_of(task);

	if (!call)
		return;
	if (!faults(task, call, place)) {
		call->fault.id = faults_of(task);
		call->fault.inode = place->inode;
		count(place->counted, FAULT_PAGES, 1);
	}
	count(place->counted, around ? AHEAD_MAPPED_PAGES : AHEAD_USED_PAGES, used(place, first, end));
	call->fault.index = around ? ~0ULL : first;
}

/* A task that leaves the CPU for I/O inside a read: the page it asked for is on its way. */
static __always_inline void switched_out(struct task_struct *task)
{
	struct call *call;
	u32 number;

	if (!BPF_CORE_READ_BITFIELD(task, in_iowait))
		return;
	call = bpf_task_storage_get(&calls, task, 0, 0);
	if (!call)
		return;
	number = system_call_of(task);
	if (number < SYSCALLS && settings.contexts[number] == CONTEXT_READ)
		call->waited_at = task->ioac.syscr + 1;
}

#endif
