/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the probe's program and its user side agree on; mod.rs names the counters in this order. */
#ifndef PLIMSOLL_PAGE_CACHE_H
#define PLIMSOLL_PAGE_CACHE_H

/* Classes of a workload's own that a request may have; mod.rs of folders has the same number. */
#define OWN_CLASSES 8
#include "../folders/folders.h"

enum counter {
	READ_CALLS,
	READ_PAGES,
	READ_BLOCKS,
	READ_MISSED_PAGES,
	READ_MISSED_BLOCKS,
	READ_CALLS_MISSED,
	READ_CALLS_WAITED,
	FAULT_PAGES,
	FAULT_MISSED_PAGES,
	READAHEAD_PAGES,
	PREFETCH_PAGES,
	AHEAD_USED_PAGES,
	AHEAD_MAPPED_PAGES,
	AHEAD_EVICTED_PAGES,
	WRITE_PAGES,
	OTHER_PAGES,
	UNSETTLED_PAGES,
	ADDED_PAGES,
	EVICTED_PAGES,
	DROPPED_PAGES,
	WHOLE_BLOCK_READS, /* reads of one whole block: a call, a block and its pages at the price of one count */
	COUNTERS,
};

enum lost {
	LOST_FILES,	/* the map of files was full */
	LOST_TASKS,	/* no room for a task's call */
	LOST_AHEAD,	/* the map of pages brought ahead was full, or a range too long for it */
	LOST_INTERVALS, /* a call asked for pages that came in more pieces than it can remember */
	LOSSES,
};

/* What a system call does to the page cache; the user side fills the table by number. */
enum context {
	CONTEXT_OTHER,
	CONTEXT_READ,	  /* range known from get_pages or from the call's result */
	CONTEXT_READ_LOOSE, /* reads, but does not count itself in the task's read calls */
	CONTEXT_WRITE,
	CONTEXT_PREFETCH,
	CONTEXT_FAULT, /* no call at all */
	CONTEXT_COPY, /* copy_file_range */
	CONTEXT_RING, /* io_uring_enter: reads, and does not count itself */
};

/* How a read call says what it asks for: bits in the table by number. */
enum read_kind {
	READ_FILE = 1, /* from the file's own position: read, readv */
	POSITION_ARGUMENT = 2, /* the fourth argument: pread64, preadv, preadv2 */
	LENGTH_VECTORS = 4, /* readv, preadv, preadv2; else the third argument */
};

#define SYSCALLS 512
#define AHEAD_PAGES 512 /* pages in one entry of the map of pages brought ahead */
#define AHEAD_WORDS (AHEAD_PAGES / 64)
/* Where the program looks before it looks into that map: how many pages wait in an entry, or in another that shares the place. */
#define WAITING_PLACES 65536
#define PIECES 12
#define RECENT_FILES 64
#define VECTORS 16
#define RING_READS 16 /* reads by io_uring that a task may have under way whose pages are told apart */
#define SIZE_UNKNOWN 0x7fffffffffffffffLL

/* Set before load. The user side writes it word by word in this order (settings.rs). */
struct settings {
	struct folders folders;
	unsigned int page_shift;
	unsigned int block_shift; /* pages to blocks */
	unsigned int direct_flag; /* O_DIRECT */
	unsigned int faults_are_seen;
	unsigned int positioned_read; /* the number of pread64, in which PostgreSQL reads */
	unsigned int ring_reads_are_seen; /* when they are submitted */
	/* Where the classic tracepoints have their fields, in bytes (their format files say). */
	unsigned int op_inode_at, op_index_at, op_device_at, op_order_at; /* add, delete; no order: 0 */
	unsigned int pages_inode_at, pages_device_at, pages_first_at, pages_last_at;
	unsigned int map_inode_at, map_device_at, map_first_at, map_last_at;
	unsigned int fault_inode_at, fault_device_at, fault_index_at;
	unsigned char contexts[SYSCALLS]; /* what each system call does to the page cache */
	unsigned char reads[SYSCALLS]; /* how each read call says what it asks for */
	struct own_class own[OWN_CLASSES];
};

struct ahead_key {
	unsigned int file;
	unsigned int place;
};

struct ahead_pages {
	unsigned long long waiting[AHEAD_WORDS];
};

#endif
