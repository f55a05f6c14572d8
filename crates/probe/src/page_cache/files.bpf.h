/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose a page is: maps of files and folders, and the class of a file. */
#ifndef PLIMSOLL_FILES_BPF_H
#define PLIMSOLL_FILES_BPF_H

#include "../bpf/counters.bpf.h"

const volatile struct settings settings SEC(".rodata.settings");

u32 files_seen;

COUNTERS_OF_EACH_CPU(counters, CLASSES, COUNTERS);
COUNTERS_OF_EACH_CPU(losses, 1, LOSSES);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct file_key);
	__type(value, struct file_entry);
} files SEC(".maps");

/* Files that are not the target's, so that they are looked at once. May forget. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
} foreign SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct directory_key);
	__type(value, u32);
} directories SEC(".maps");

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

static __always_inline bool watched(u32 device)
{
	for (int i = 0; i < DEVICES; i++) {
		if (!settings.devices[i])
			return false;
		if (settings.devices[i] == device)
			return true;
	}
	return false;
}

/* PostgreSQL names temporary files pgsql_tmp..., and temporary relations t, the backend's number, _ and theirs. */
static __always_inline bool is_temp(const char *name)
{
	const char temp[] = "pgsql_tmp";

	if (name[0] == 't' && name[1] >= '0' && name[1] <= '9')
		return true;
	for (int i = 0; i < sizeof(temp) - 1; i++)
		if (name[i] != temp[i])
			return false;
	return true;
}

/*
 * btrfs numbers files in each subvolume anew: there the subvolume's number stands for the device, as stat(2) has it.
 * Classic tracepoints do not give it, so their keys are the file system's throughout.
 */
static __always_inline u32 numbered_by(struct inode *inode, u32 device)
{
	struct btrfs_inode *tree;

	if (!settings.by_subvolume || !bpf_core_type_exists(struct btrfs_inode) ||
	    BPF_CORE_READ(inode, i_sb, s_magic) != BTRFS_MAGIC)
		return device;
	tree = (void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	return BPF_CORE_READ(tree, root, anon_dev);
}

/* The class of a file seen for the first time: that of the nearest folder above it that is known. */
static __noinline u32 classify(struct inode *inode, u32 device)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *entry;
	char name[16] = {};

	if (!alias)
		return CLASS_NONE;
	entry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(entry, d_name.name));
	for (int depth = 0; depth < 8; depth++) {
		struct dentry *above = BPF_CORE_READ(entry, d_parent);
		struct directory_key key = {};
		u32 *class;

		if (!above || above == entry)
			break;
		key.inode = BPF_CORE_READ(above, d_inode, i_ino);
		key.device = numbered_by(BPF_CORE_READ(above, d_inode), device);
		class = bpf_map_lookup_elem(&directories, &key);
		if (class)
			return *class == CLASS_DATA && is_temp(name) ? CLASS_TEMP : *class;
		entry = above;
	}
	return CLASS_NONE;
}

static __noinline struct file_entry *first_seen(struct inode *inode, struct file_key *key, u32 generation,
						u32 device)
{
	struct file_entry fresh = {.generation = generation};

	fresh.class = classify(inode, device);
	if (fresh.class >= CLASSES) {
		/* An entry of the same number that was the target's is no more. */
		bpf_map_delete_elem(&files, key);
		bpf_map_update_elem(&foreign, key, &generation, BPF_ANY);
		return NULL;
	}
	fresh.number = __sync_fetch_and_add(&files_seen, 1);
	if (bpf_map_update_elem(&files, key, &fresh, BPF_ANY)) {
		lose(LOST_FILES);
		return NULL;
	}
	return bpf_map_lookup_elem(&files, key);
}

/*
 * Looks a file up by its number; false when it is not the target's. With the inode at hand a new file is classified, else
 * it has to be known.
 */
static __always_inline bool look_up(struct place *place, struct file_key *key, struct inode *inode, u32 generation,
				    u32 device)
{
	struct file_entry *file = bpf_map_lookup_elem(&files, key);
	u32 *not_ours;

	/* Known from its folder before it was seen: the first inode of that number is taken for it. */
	if (file && inode && file->generation == GENERATION_UNKNOWN)
		file->generation = generation;
	/* File systems use numbers again: the generation tells. */
	if (inode && (!file || file->generation != generation)) {
		not_ours = bpf_map_lookup_elem(&foreign, key);
		if (not_ours && *not_ours == generation)
			return false;
		file = first_seen(inode, key, generation, device);
	}
	if (!file || file->class >= CLASSES)
		return false;
	place->number = file->number;
	place->class = file->class;
	return true;
}

/* Fills `place` for a file by its number. */
static __always_inline bool find(struct place *place, u64 number, u32 device, struct inode *inode, u32 generation)
{
	struct file_key key = {.inode = number, .device = inode ? numbered_by(inode, device) : device};
	u32 class;

	if (!look_up(place, &key, inode, generation, device))
		return false;
	place->inode = number;
	class = place->class;
	place->counted = bpf_map_lookup_elem(&counters, &class);
	return place->counted != NULL;
}

#endif
