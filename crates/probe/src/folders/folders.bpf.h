/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose a file is: maps of files and folders, and the class of a file. Whoever includes this has `settings` that begin with
 * `folders`, and `lose(LOST_FILES)`.
 */
#ifndef PLIMSOLL_FOLDERS_BPF_H
#define PLIMSOLL_FOLDERS_BPF_H

u32 files_seen;

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
	__type(key, struct file_key);
	__type(value, u32);
} directories SEC(".maps");

static __always_inline bool watched(u32 device)
{
	for (int i = 0; i < DEVICES; i++) {
		if (!settings.folders.devices[i])
			return false;
		if (settings.folders.devices[i] == device)
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

	if (!settings.folders.by_subvolume || !bpf_core_type_exists(struct btrfs_inode) ||
	    BPF_CORE_READ(inode, i_sb, s_magic) != BTRFS_MAGIC)
		return device;
	tree = (void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	return BPF_CORE_READ(tree, root, anon_dev);
}

static __always_inline u32 *class_of_folder(struct inode *folder, u32 device)
{
	struct file_key key = {.inode = BPF_CORE_READ(folder, i_ino), .device = numbered_by(folder, device)};

	return bpf_map_lookup_elem(&directories, &key);
}

union file_name {
	char text[NAME_BYTES];
	u32 words[NAME_WORDS];
};

/* Of a file in a folder of class `within`: what its name makes it. `own_class` of known.rs says the same. */
static __always_inline u32 class_by_name(const union file_name *name, u32 within)
{
#ifdef OWN_CLASSES
	for (u32 at = 0; at < OWN_CLASSES; at++) {
		const volatile struct own_class *own = &settings.own[at];
		u32 off = 0;

		if (!own->mask[0])
			break;
		for (int word = 0; word < NAME_WORDS; word++)
			off |= (name->words[word] & own->mask[word]) ^ own->begins[word];
		if (own->within == within && !off)
			return CLASS_OWN + at;
	}
#endif
	return within == CLASS_DATA && is_temp(name->text) ? CLASS_TEMP : within;
}

/* The class of a file seen for the first time: its own, or that of the nearest folder above it that is known. */
static __noinline u32 classify(struct inode *inode, u32 device)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *entry;
	union file_name name = {};
	u32 *class;

	/* A file may have the number that a folder had before, such as that of the self-test. */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFDIR) {
		class = class_of_folder(inode, device);
		if (class)
			return *class;
	}
	if (!alias)
		return CLASS_NONE;
	entry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	bpf_probe_read_kernel_str(name.text, sizeof(name.text), BPF_CORE_READ(entry, d_name.name));
	for (int depth = 0; depth < 8; depth++) {
		struct dentry *above = BPF_CORE_READ(entry, d_parent);

		if (!above || above == entry)
			break;
		class = class_of_folder(BPF_CORE_READ(above, d_inode), device);
		if (class)
			return class_by_name(&name, *class);
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
 * Looks a file up by its number, and fills its key; NULL when it is not the target's. With the inode at hand a new file is
 * classified, else it has to be known. Numbers and generations are read by those who call, each in the way it can.
 */
static __always_inline struct file_entry *look_up(struct file_key *key, u64 number, struct inode *inode, u32 generation,
						  u32 device)
{
	struct file_entry *file;
	u32 *not_ours;

	key->inode = number;
	key->device = inode ? numbered_by(inode, device) : device;
	file = bpf_map_lookup_elem(&files, key);
	/* Known from its folder before it was seen: the first inode of that number is taken for it. */
	if (file && inode && file->generation == GENERATION_UNKNOWN)
		file->generation = generation;
	/* File systems use numbers again: the generation tells. */
	if (inode && (!file || file->generation != generation)) {
		not_ours = bpf_map_lookup_elem(&foreign, key);
		if (not_ours && *not_ours == generation)
			return NULL;
		file = first_seen(inode, key, generation, device);
	}
	return file && file->class < CLASSES ? file : NULL;
}

#endif
