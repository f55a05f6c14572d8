/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a task asks of a file at the moment, and what its call brought. */
#ifndef PLIMSOLL_CALLS_BPF_H
#define PLIMSOLL_CALLS_BPF_H

#include "ahead.bpf.h"
#include "../bpf/system_calls.bpf.h"

struct piece {
	u64 first, end;
};

/* A read under way. What every read touches comes first. */
struct reading {
	u64 id; /* the task's count of finished read calls, plus one */
	u64 inode;
	u64 first, end; /* pages asked for; nothing beyond the file's end */
	u64 last_block; /* the newest block counted as missed, plus one */
	bool counted, known, missed, waited; /* known: the range is, from the call's arguments */
	bool submitted; /* a worker's, of a read that was counted when it was submitted */
	/* For a range not known yet: what the call brought meanwhile, counted as unsettled. */
	u32 pieces;
	u32 spilled_pages; /* what came after those: brought ahead already, and right so unless the range reaches that far */
	u64 spilled_first, spilled_end;
	u64 last_asked; /* of the newest event, for calls that do not count themselves */
	struct piece brought[PIECES];
	/* Sums of claim(), here because the verifier would follow every combination of them as variables. */
	u64 pages, missed_pages, missed_blocks;
};

/* A fault under way. It may lie inside a read, when the kernel copies to or from a mapped file. */
struct faulting {
	u64 id; /* the task's count of finished faults, plus one */
	u64 inode;
	u64 index; /* of the page that faulted; all ones when fault-around alone is known */
};

/* A file that the task asked for lately. */
struct recent {
	u64 inode;
	u32 device, generation;
	u32 number, class;
};

struct call {
	u64 waited_at; /* the id of the read in which the task waited for I/O, plus one */
	struct reading read;
	struct faulting fault;
	struct recent recent[RECENT_FILES]; /* each in the place that its inode gives */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline u32 system_call_of(struct task_struct *task)
{
	return call_in(registers_of(task));
}

static __always_inline u32 context_of(struct task_struct *task)
{
	u32 call;

	if (task->flags & PF_KTHREAD)
		return CONTEXT_OTHER;
	/* Its registers are a copy of those of the thread that made it. */
	if (task->flags & PF_IO_WORKER)
		return CONTEXT_RING;
	call = system_call_of(task);
	if (call == (u32)-1)
		return CONTEXT_FAULT;
	return call < SYSCALLS ? settings.contexts[call] : CONTEXT_OTHER;
}

/* Bytes that the call asks for; 0 when that cannot be told. */
static __always_inline u64 length_of(struct pt_regs *regs, u32 kind)
{
	return kind & LENGTH_VECTORS ? bytes_of_vectors(regs, VECTORS) : argument(regs, 2);
}

/* The bytes of a read call from its arguments, while it is under way. */
static __always_inline bool range_of(struct task_struct *task, s64 *from, u64 *length)
{
	struct pt_regs *regs = registers_of(task);
	u32 call = call_in(regs), kind;
	struct file *file;

	if (call >= SYSCALLS || !settings.reads[call] || task->flags & PF_IO_WORKER)
		return false;
	kind = settings.reads[call];
	*from = kind & POSITION_ARGUMENT ? (s64)argument(regs, 3) : -1;
	if (*from < 0) {
		file = file_of(task, 0);
		if (!file)
			return false;
		*from = BPF_CORE_READ(file, f_pos);
	}
	*length = length_of(regs, kind);
	return *length > 0 && *from >= 0;
}

static __always_inline struct recent *recent_of(struct call *call, u64 inode)
{
	return &call->recent[inode % RECENT_FILES];
}

/* The file of a read, for the next one. Whatever could make that answer wrong changes the generation. */
static __always_inline void remember(struct task_struct *task, struct place *place, u32 device, u32 generation)
{
	struct call *call = bpf_task_storage_get(&calls, task, 0, 0);
	struct recent *recent;

	if (!call)
		return;
	recent = recent_of(call, place->inode);
	recent->inode = place->inode;
	recent->device = device;
	recent->generation = generation;
	recent->number = place->number;
	recent->class = place->class;
}

/*
 * What PostgreSQL reads nearly always: by position one whole block, inside the file, of a file it asked for lately, in
 * which nothing that was brought ahead waits for use, and for which nothing came in. True if it was that, and is counted.
 * Short and on its own, because between two reads the caches of the CPU have been used by others: what costs here is each
 * further line of code and data.
 */
static __always_inline bool plain_read(struct task_struct *task, struct inode *inode)
{
	struct call *call = bpf_task_storage_get(&calls, task, 0, 0);
	u64 id = task->ioac.syscr + 1, number = inode->i_ino, from, first, pages = 1 << settings.block_shift;
	u64 block_bytes = pages << settings.page_shift, *counted;
	struct pt_regs *regs = registers_of(task);
	u32 *waits, class, system_call = call_in(regs);
	struct recent *recent;
	struct reading *read;

	if (!call || system_call != settings.positioned_read)
		return false;
	from = argument(regs, 3);
	if (argument(regs, 2) != block_bytes || from & (block_bytes - 1) || (s64)(from + block_bytes) > inode->i_size)
		return false;
	recent = recent_of(call, number);
	if (recent->inode != number || recent->generation != inode->i_generation || recent->device != inode->i_sb->s_dev)
		return false;
	read = &call->read;
	if ((read->id == id && read->inode == number) || call->waited_at == id)
		return false;
	first = from >> settings.page_shift;
	waits = waiting_at(recent->number, first);
	class = recent->class;
	counted = bpf_map_lookup_elem(&counters, &class);
	if (!waits || *waits || !counted)
		return false;
	count(counted, WHOLE_BLOCK_READS, 1);
	read->id = id;
	read->inode = number;
	read->first = first;
	read->end = first + pages;
	read->last_block = 0;
	read->counted = read->known = true;
	read->missed = read->waited = false;
	return true;
}

/* The range asked for grows to `end`: what is new of it is counted. */
static __always_inline void ask(struct reading *read, struct place *place, u64 first, u64 end)
{
	u64 from, blocks;

	if (read->submitted) {
		read->first = read->counted ? read->first : first;
		read->end = end;
		read->counted = true;
		return;
	}
	if (!read->counted) {
		read->counted = true;
		read->first = first;
		read->end = first;
		/* What PostgreSQL reads nearly always. */
		if (end - first == 1 << settings.block_shift && !(first & ((1 << settings.block_shift) - 1))) {
			read->end = end;
			count(place->counted, WHOLE_BLOCK_READS, 1);
			return;
		}
		count(place->counted, READ_CALLS, 1);
	}
	from = first > read->end ? first : read->end;
	if (from >= end)
		return;
	blocks = ((end - 1) >> settings.block_shift) - (from >> settings.block_shift) + 1;
	if (from > read->first && from == read->end && (from & ((1 << settings.block_shift) - 1)))
		blocks--;
	count(place->counted, READ_PAGES, end - from);
	count(place->counted, READ_BLOCKS, blocks);
	read->end = end;
}

static __always_inline u64 end_of(struct place *place)
{
	return place->size > 0 ? ((u64)(place->size - 1) >> settings.page_shift) + 1 : 0;
}

/* A read of so many bytes: what it asks for is counted. */
static __always_inline void ask_for_bytes(struct reading *read, struct place *place, s64 from, u64 length)
{
	u64 first = from >> settings.page_shift, end = ((from + length - 1) >> settings.page_shift) + 1;

	read->known = true;
	if (end > end_of(place))
		end = end_of(place);
	if (first < end) {
		ask(read, place, first, end);
		count(place->counted, AHEAD_USED_PAGES, used(place, first, end));
	}
}

static __always_inline void forget(struct reading *read, u64 inode)
{
	read->inode = inode;
	read->first = read->end = read->last_block = 0;
	read->counted = read->known = read->missed = read->waited = read->submitted = false;
	read->pieces = read->spilled_pages = 0;
}

/* The task's read of this file; a new one forgets the last. */
static __always_inline struct reading *begin(struct task_struct *task, struct call *call, struct place *place, u64 id,
					     bool by_arguments)
{
	struct reading *read = &call->read;
	u64 length;
	s64 from;

	if (read->id == id + 1 && read->inode == place->inode)
		return read;
	read->id = id + 1;
	forget(read, place->inode);
	if (by_arguments && range_of(task, &from, &length))
		ask_for_bytes(read, place, from, length);
	return read;
}

static __always_inline struct call *call_of(struct task_struct *task)
{
	struct call *call = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!call)
		lose(LOST_TASKS);
	return call;
}

static __always_inline void misses(struct reading *read, struct place *place)
{
	if (read->missed)
		return;
	read->missed = true;
	count(place->counted, READ_CALLS_MISSED, 1);
	if (read->waited) {
		read->waited = false;
		count(place->counted, READ_CALLS_WAITED, -1);
	}
}

/* Pages come in for a range that is known: those inside are missed, the others brought ahead. */
static __always_inline void settle(struct reading *read, struct place *place, u64 first, u64 end)
{
	u64 from = first > read->first ? first : read->first;
	u64 to = end < read->end ? end : read->end, block, blocks;

	if (from >= to) {
		count(place->counted, READAHEAD_PAGES, end - first);
		ahead_add(place, first, end);
		return;
	}
	if (end - first > to - from) {
		count(place->counted, READAHEAD_PAGES, (end - first) - (to - from));
		ahead_add(place, first, from);
		ahead_add(place, to, end);
	}
	block = from >> settings.block_shift;
	blocks = ((to - 1) >> settings.block_shift) - block + 1;
	/* A block that two additions share is missed once. */
	if (read->last_block == block + 1)
		blocks--;
	read->last_block = ((to - 1) >> settings.block_shift) + 1;
	count(place->counted, READ_MISSED_PAGES, to - from);
	count(place->counted, READ_MISSED_BLOCKS, blocks);
	misses(read, place);
}

/* Pages come in for a range that is not known yet. */
static __always_inline void keep(struct reading *read, struct place *place, u64 first, u64 end)
{
	u32 last = read->pieces - 1;

	count(place->counted, UNSETTLED_PAGES, end - first);
	if (last < PIECES && read->brought[last].end == first) {
		read->brought[last].end = end;
		return;
	}
	last = read->pieces;
	if (last >= PIECES) {
		/* Read-ahead over pages that are partly there comes in many pieces, and goes upward from the range. */
		if (!read->spilled_pages || first < read->spilled_first)
			read->spilled_first = first;
		if (!read->spilled_pages || end > read->spilled_end)
			read->spilled_end = end;
		read->spilled_pages += end - first;
		ahead_add(place, first, end);
		return;
	}
	read->brought[last].first = first;
	read->brought[last].end = end;
	read->pieces = last + 1;
}

/*
 * Settles what was kept, now that the range is known: all of it goes among the pages brought ahead, whence the range asked
 * for is taken back right after. How many pages were missed.
 */
static __always_inline u64 claim(struct reading *read, struct place *place)
{
	read->pages = read->missed_pages = read->missed_blocks = 0;
	for (u32 i = 0; i < PIECES; i++) {
		struct piece piece;
		u64 first, end, block;

		if (i >= read->pieces)
			break;
		piece = read->brought[i];
		read->pages += piece.end - piece.first;
		ahead_add(place, piece.first, piece.end);
		first = piece.first > read->first ? piece.first : read->first;
		end = piece.end < read->end ? piece.end : read->end;
		if (first >= end)
			continue;
		block = first >> settings.block_shift;
		read->missed_blocks -= read->last_block == block + 1;
		read->last_block = ((end - 1) >> settings.block_shift) + 1;
		read->missed_blocks += read->last_block - block;
		read->missed_pages += end - first;
	}
	if (read->spilled_pages) {
		read->pages += read->spilled_pages;
		if (read->end >= read->spilled_end)
			read->missed_pages += read->spilled_pages;
		/* Which of them were asked for is not known any more, or which blocks they share. */
		if (read->end > read->spilled_first)
			lose(LOST_INTERVALS);
	}
	read->pieces = read->spilled_pages = 0;
	count(place->counted, UNSETTLED_PAGES, -read->pages);
	count(place->counted, READAHEAD_PAGES, read->pages - read->missed_pages);
	count(place->counted, READ_MISSED_PAGES, read->missed_pages);
	count(place->counted, READ_MISSED_BLOCKS, read->missed_blocks);
	return read->missed_pages;
}

#endif
