/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose a page is, and where what is counted of it goes. */
#ifndef PLIMSOLL_FILES_BPF_H
#define PLIMSOLL_FILES_BPF_H

#include "../bpf/counters.bpf.h"

const volatile struct settings settings SEC(".rodata.settings");

COUNTERS_OF_EACH_CPU(counters, CLASSES, COUNTERS);
COUNTERS_OF_EACH_CPU(losses, 1, LOSSES);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ahead_key);
	__type(value, struct ahead_pages);
} ahead SEC(".maps");

/* A place in the page cache: whose, and what it is to the target. */
struct place {
	u64 inode;
	u32 number; /* of the file */
	u32 class;
	u64 *counted;
	s64 size; /* of the file in bytes; what is beyond its end is not asked for */
};

static __noinline int lose(u32 what)
{
	u32 zero = 0;
	u64 *lost = bpf_map_lookup_elem(&losses, &zero);

	if (lost && what < LOSSES)
		__sync_fetch_and_add(&lost[what], 1);
	return 0;
}

static __always_inline void count(u64 *counted, u32 what, u64 by)
{
	if (by)
		__sync_fetch_and_add(&counted[what], by);
}

#include "../folders/folders.bpf.h"

/* Fills `place` for a file by its number. */
static __always_inline bool find(struct place *place, u64 number, u32 device, struct inode *inode, u32 generation)
{
	struct file_key key = {};
	struct file_entry *file = look_up(&key, number, inode, generation, device);
	u32 class;

	if (!file)
		return false;
	place->number = file->number;
	place->class = file->class;
	place->inode = number;
	class = place->class;
	place->counted = bpf_map_lookup_elem(&counters, &class);
	return place->counted != NULL;
}

#endif
